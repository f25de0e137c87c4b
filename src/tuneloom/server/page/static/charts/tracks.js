// Spans laid out in rows: one row for each slot of a resource, as in the report.
const TALLEST = 34, USUAL = 22, FEW = 8, MOST_HEIGHT = 132, GAP = 12, MOST = 40;

const known = (resources, spans) => {
  const names = new Set(resources.map((resource) => resource.name));
  const others = [...new Set(spans.map((span) => span.resource))].filter((name) => !names.has(name)).sort();
  return [...resources, ...others.map((name) => ({ name, slots: 1, device_key: null, away: [] }))].slice(0, MOST);
};

const stack = (spans, slots) => {
  const freeAt = new Array(slots).fill(0);
  const placed = spans.map((span) => {
    // Clocks of different processes differ a little: a microsecond is no overlap.
    let row = freeAt.findIndex((_, at) => freeAt.slice(at, at + span.slots).every((end) => end <= span.start_s + 1e-6));
    if (row < 0) row = freeAt.length;
    for (let at = row; at < row + span.slots; at++) freeAt[at] = span.end_s;
    return { span, row };
  });
  return { placed, rows: freeAt.length };
};

export const layOut = (resources, spans) => {
  const shown = known(resources, spans);
  const tallest = shown.reduce((sum, resource) => sum + resource.slots, 0) <= FEW ? TALLEST : USUAL;
  const ordered = [...spans].sort((a, b) => a.start_s - b.start_s || a.end_s - b.end_s);
  const tracks = [], placed = [];
  let top = 0;
  for (const resource of shown) {
    const found = stack(ordered.filter((span) => span.resource === resource.name), resource.slots);
    const rowHeight = Math.min(tallest, MOST_HEIGHT / found.rows);
    const track = { resource, top, rowHeight, height: rowHeight * found.rows };
    tracks.push(track);
    placed.push(...found.placed.map((each) => ({ ...each, track })));
    top += track.height + GAP;
  }
  return { tracks, placed, height: Math.max(0, top - GAP) };
};
