// A linear scale with round ticks.

export interface Scale {
  low: number;
  high: number;
  ticks: number[];
  /** Place of a value from left to right, 0 to 100; beyond the ends it stays at them. */
  at: (value: number) => number;
}

function step(span: number, wanted: number): number {
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 2.5 ? 2.5 : lead <= 5 ? 5 : 10);
}

export function scaleOf(values: (number | null)[], wanted = 4, bounds?: [number, number]): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - 0.05 * (Math.abs(low) || 1), high + 0.05 * (Math.abs(high) || 1)];
  const pad = 0.04 * (high - low);
  [low, high] = [low - pad, high + pad];
  if (bounds) [low, high] = [Math.max(low, bounds[0]), Math.min(high, bounds[1])];
  const by = step(high - low, wanted);
  const ticks: number[] = [];
  for (let i = Math.ceil(low / by - 1e-9); i * by <= high + 1e-9 * by; i++) {
    ticks.push(Number((i * by).toPrecision(12)));
  }
  const at = (value: number) => Math.max(0, Math.min(100, (100 * (value - low)) / (high - low)));
  return { low, high, ticks, at };
}
