// How a number is said: as src/isolux/report/wording.py says it, digit for digit.

const NBSP = "\u00a0";
const MINUS = "\u2212";
export const NOTHING = "–";

const STATUS_SHAPE: Record<string, string> = {
  ok: "●",
  "insufficient units": "×",
  "insufficient clusters": "×",
  undefined: "÷",
  "not scored": NOTHING,
};

/** A mark for a status: a circle for a value that is compared, but read with caution. */
export function statusShape(status: string): string {
  return STATUS_SHAPE[status] ?? "○";
}

/** Whether a value of this status is compared with others. */
export function isComparable(status: string): boolean {
  return ["●", "○"].includes(statusShape(status));
}

/** Round as the report does: after 12 digits all is rounding, and a half goes away from 0. */
function fixed(value: number, places: number): string {
  if (!Number.isFinite(value)) return String(value);
  const [digits, power] = Math.abs(value).toPrecision(12).split("e");
  const shifted = Number(`${digits}e${Number(power ?? 0) + places}`);
  const text = shifted < 1e15 ? Number(`${Math.round(shifted)}e${-places}`).toFixed(places) : Math.abs(value).toFixed(places);
  return (value < 0 && Number(text) !== 0 ? MINUS : "") + text;
}

function tiny(fraction: number): string | null {
  const size = 100 * Math.abs(fraction);
  if (!(size >= 1e-7 && size < 0.1)) return null;
  const digits = 1 - Math.floor(Math.log10(size));
  return fixed(size, digits).replace(/0+$/, "");
}

function signed(text: string, value: number, sign: boolean): string {
  return sign && value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

export function valueText(value: number | null, unit: string, sign = false): string {
  if (value === null) return NOTHING;
  if (unit === "fraction") {
    const small = tiny(value);
    if (small !== null) return value < 0 ? MINUS + small : signed(small, value, sign);
    return signed(fixed(100 * value, 1), value, sign);
  }
  return signed(fixed(value, 3), value, sign);
}

/** The unit of a metric's own values: "%", "pixels", nothing. */
export function unitOf(unit: string): string {
  return unit === "fraction" ? "%" : unit;
}

/** The unit of differences between its values. */
export function gapUnitOf(unit: string): string {
  return unit === "fraction" ? "points" : unit;
}

export function withUnit(value: number | null, unit: string): string {
  const text = valueText(value, unit);
  return value === null || !unit ? text : `${text}${NBSP}${unitOf(unit)}`;
}

export function pointsText(value: number | null, unit: string, sign = true): string {
  const text = valueText(value, unit, sign);
  const word = gapUnitOf(unit);
  return value === null || !word ? text : `${text}${NBSP}${word}`;
}

export function intervalText(low: number | null, high: number | null, unit: string): string {
  if (low === null || high === null) return NOTHING;
  return `${valueText(low, unit)} to ${valueText(high, unit)}`;
}

export function pText(p: number | null): string {
  if (p === null) return NOTHING;
  return p < 0.001 ? `<${NBSP}0.001` : p.toFixed(3);
}

export function count(n: number | null): string {
  return n === null ? NOTHING : n.toLocaleString("en-US");
}

export function percent(level: number): string {
  return `${Number((100 * level).toPrecision(12))}${NBSP}%`;
}

export function plural(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function titled(name: string): string {
  return name.replaceAll("_", " ");
}

/** A name that would fill a panel, cut; where it is pointed at, the whole of it is shown. */
export function brief(name: string): string {
  return name.length <= 120 ? name : `${name.slice(0, 119)}…`;
}
