// What the trials of a job come to, one after another: the best of every kernel, the latency of the
// whole model, failures by kind. The server tells each trial once.
export class Trials {
  constructor() {
    this.count = 0;
    this.tasks = new Map();
    this.kernels = new Map();
    this.failures = new Map();
    this.drawn = null;
  }

  // Kernels with their weights and operations, and their untuned times where these are known.
  know(tasks) {
    this.kernels = new Map(tasks.map((task) => [task.key, task]));
    this.drawn = null;
  }

  knows(key) { return this.kernels.has(key); }

  get curve() { return this.replayed().curve; }

  // Of how many kernels the untuned time is an estimate, and what the untuned model takes.
  get estimated() { return this.replayed().estimated; }

  get untuned() { return this.replayed().untuned; }

  add(trials) {
    this.drawn = null;
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
  }

  replayed() { return (this.drawn ??= this.replay()); }

  // The steps of all kernels in the order of their trials. A kernel counts with its untuned time until it was
  // measured; where nobody knows that, with an estimate from its operations and the times of the others.
  replay() {
    const best = this.untunedTimes(), sizes = [...best.values()];
    if (!this.count || !sizes.some(Boolean)) return { curve: [], estimated: 0, untuned: null };
    const steps = [...this.tasks].flatMap(([key, seen]) => seen.steps.map(([, ms, at]) => [at, key, ms])).sort((a, b) => a[0] - b[0]);
    let total = [...this.kernels.values()].reduce((sum, kernel) => sum + kernel.weight * best.get(kernel.key), 0);
    const curve = [[1, total]], untuned = total;
    for (const [at, key, ms] of steps) {
      if (!best.has(key) || ms >= best.get(key)) continue;
      total -= this.kernels.get(key).weight * (best.get(key) - ms);
      best.set(key, ms);
      if (curve[curve.length - 1][0] === at) curve[curve.length - 1][1] = total;
      else curve.push([at, total]);
    }
    return { curve, untuned, estimated: [...this.kernels.keys()].filter((key) => !this.knownTime(key)).length };
  }

  knownTime(key) {
    const seen = this.tasks.get(key);
    return this.kernels.get(key).before_ms ?? (seen?.before_s ? seen.before_s * 1e3 : seen?.steps[0]?.[1] ?? null);
  }

  untunedTimes() {
    const kernels = [...this.kernels.values()];
    const rates = kernels.filter((kernel) => kernel.gflop && this.knownTime(kernel.key)).map((kernel) => this.knownTime(kernel.key) / kernel.gflop).sort((a, b) => a - b);
    const rate = rates.length ? rates[Math.floor(rates.length / 2)] : 0;
    return new Map(kernels.map((kernel) => [kernel.key, this.knownTime(kernel.key) ?? rate * kernel.gflop]));
  }
}
