// What the trials of a job come to, one after another: the best of every kernel, the latency of the
// whole model, failures by kind. The server tells each trial once.
export class Trials {
  constructor() {
    this.count = 0;
    this.tasks = new Map();
    this.weights = new Map();
    this.before = new Map();
    this.failures = new Map();
    this.curve = [];
  }

  // Kernels with their weights, and their untuned times where these are known; a curve begins when each
  // kernel has a time.
  know(tasks) {
    this.weights = new Map(tasks.map((task) => [task.key, task.weight]));
    this.before = new Map(tasks.filter((task) => task.before_ms).map((task) => [task.key, task.before_ms]));
    this.replay();
  }

  knows(key) { return this.weights.has(key); }

  add(trials) {
    for (const trial of trials) {
      this.count += 1;
      const seen = this.tasks.get(trial.task_key) || { trials: 0, failed: 0, best_s: null, before_s: null, steps: [] };
      this.tasks.set(trial.task_key, seen);
      seen.trials += 1;
      if (trial.best_s === null) this.fail(trial, seen);
      else this.measure(trial, seen);
    }
  }

  fail(trial, seen) {
    seen.failed += 1;
    this.failures.set(trial.outcome, (this.failures.get(trial.outcome) || 0) + 1);
  }

  measure(trial, seen) {
    if (trial.origin === "default") seen.before_s = Math.min(trial.best_s, seen.before_s ?? Infinity);
    if (seen.best_s !== null && trial.best_s >= seen.best_s) return;
    seen.steps.push([seen.trials, trial.best_s * 1e3, this.count]);
    seen.best_s = trial.best_s;
    this.improve();
  }

  improve() {
    let total = 0;
    for (const [key, weight] of this.weights) {
      const best = Math.min((this.tasks.get(key)?.best_s ?? Infinity) * 1e3, this.before.get(key) ?? Infinity);
      if (best === Infinity) return;
      total += weight * best;
    }
    this.reach(this.count, total);
  }

  reach(at, total) {
    const last = this.curve[this.curve.length - 1];
    if (this.weights.size && (!last || total < last[1])) this.curve.push([at, total]);
  }

  // The curve again, for other weights: the steps of all kernels in the order of their trials.
  replay() {
    const steps = [...this.tasks].flatMap(([key, seen]) => seen.steps.map(([, ms, at]) => [at, key, ms])).sort((a, b) => a[0] - b[0]);
    const best = new Map(this.before);
    this.curve = [];
    const reach = (at) => {
      if (![...this.weights.keys()].every((each) => best.has(each))) return;
      this.reach(at, [...this.weights].reduce((sum, [each, weight]) => sum + weight * best.get(each), 0));
    };
    if (this.count && steps[0]?.[0] !== 1) reach(1);
    for (const [at, key, ms] of steps) {
      best.set(key, Math.min(ms, best.get(key) ?? ms));
      reach(at);
    }
  }
}
