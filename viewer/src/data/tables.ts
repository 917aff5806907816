// The rows that the views read, typed; a null number is null, never 0.
import type { Columns } from "./source";

type N = number | null;

export interface Group {
  row: number;
  model: number;
  line: number;
  attribute: number; // -1: everyone
  group: string;
  values: string[];
  n_units: number;
  n_clusters: number;
  value: N;
  low: N;
  high: N;
  standard_error: N;
  method: string | null;
  status: string;
  reason: string | null;
  shrunken: N;
  shrunken_low: N;
  shrunken_high: N;
  shrunken_from: N;
  difference: N;
  difference_low: N;
  difference_high: N;
  difference_p: N;
}

export interface Pair {
  model: number;
  line: number;
  attribute: number;
  group_a: string;
  group_b: string;
  value: N;
  low: N;
  high: N;
  p_adjusted: N;
  detectable: N;
  status: string;
  reason: string | null;
}

export interface Test {
  model: number;
  line: number;
  attribute: number;
  p_adjusted: N;
  status: string;
  reason: string | null;
}

export interface Change {
  run: number;
  run_b: number; // the second model's run: the same, where one run compares two models
  line: number;
  attribute: number;
  group: string;
  value: N;
  low: N;
  high: N;
  p_adjusted: N;
  status: string;
  reason: string | null;
  n_units_a: N;
}

export interface Move {
  model_a: number;
  model_b: number;
  line: number;
  attribute: number;
  group: string;
  up: number; // people whose score is higher in the second model
  down: number;
  same: number;
}

export interface Finding {
  run: number;
  rank: number;
  analysis: string;
  claim: string;
  n: N;
  p_adjusted: N;
  status: string;
  metric: string | null;
  label: string | null;
  attribute: string | null;
  group_a: string | null;
  group_b: string | null;
}

/** A figure of the report: the drawing, the words that replace it, and its caption. */
export interface Figure {
  row: number;
  run: number;
  attribute: string;
  title: string;
  svg: string;
  alt: string;
  caption: string;
}

export interface Distribution {
  model: number;
  line: number;
  attribute: number;
  group: string;
  counts: number[];
  unscored: number;
}

/** Turn columns into rows; what a column lacks is null. */
export function rows<Row>(columns: Columns | null): Row[] {
  if (!columns) return [];
  const names = Object.keys(columns);
  const n = names.length ? (columns[names[0]!] as unknown[]).length : 0;
  const found: Row[] = [];
  for (let i = 0; i < n; i++) {
    const row: Record<string, unknown> = { row: i };
    for (const name of names) row[name] = columns[name]![i] ?? null;
    found.push(row as Row);
  }
  return found;
}
