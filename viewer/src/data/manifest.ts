// What the page says besides its tables; written by src/isolux/viewer/manifest.py.

export interface Bins {
  low: number;
  high: number;
  n: number;
  two: boolean; // scores are 0 or 1 alone
}

export interface Line {
  task: string;
  metric: string;
  label: string | null;
  threshold: number | null;
  title: string;
  definition: string;
  unit: string; // "fraction" is shown as percent
  direction: "higher" | "lower" | "none";
  bins: Bins | null; // of the distributions; null: it is no mean of people's scores
}

export interface Attribute {
  name: string;
  title: string;
  parts: string[];
}

export interface Verdict {
  attribute: string;
  outcome: string;
  text: string;
  unknown: string;
}

export interface RunWords {
  title: string;
  answer: string;
  accounting: string;
  further: string[]; // sentences that follow the answer
  comparison: boolean;
  models: string[]; // of a comparison, the first and the second
  warnings: string[];
  cautions: [string, string][];
  notes: string[];
  limits: string[];
  dataset: string;
  licence: string;
  citation: string;
  label_source: string;
  cluster: string | null;
  n_units: number;
  n_clusters: number;
  level: number;
  alpha: number;
  adjusted: string;
  version: string;
  created: string;
  drawn: string;
  verdicts: Verdict[];
  paper: Paper | null; // null: no published protocol, or a page without single people
}

/** The tables that a published protocol prints, as text. */
export interface Paper {
  name: string;
  title: string;
  absent: [string, string][]; // a table that is not printed, and why
  disagreements: string[]; // of the paper with itself
  tables: { caption: string; columns: string[]; rows: string[][] }[];
}

export interface Model {
  run: number;
  model: string;
  name: string;
}

export interface Holds {
  people: boolean;
  pictures: boolean;
  served: boolean; // by a local server; else a file
  publish_min: number;
  fewest: number; // a group of fewer has no spread and no gained and lost; 0: each group has
  figures: boolean; // whether the report's figures were asked for
  undrawn: string; // what of them is not there, and why
  untested: string; // why changes between runs are not tested, where they were tried
  whole: boolean; // false: people withdrew since, and no one is counted by score
}

export interface Manifest {
  format: number;
  runs: RunWords[];
  models: Model[];
  lines: Line[];
  attributes: Attribute[];
  holds: Holds;
  people: { attributes: { name: string; title: string; values: string[] }[] }[];
}

/** The name of a line in an address: stable, whatever the order of lines. */
export function lineKey(line: Line): string {
  const parts = [line.metric, line.label ?? "", line.threshold ?? ""];
  while (parts.length > 1 && parts[parts.length - 1] === "") parts.pop();
  return parts.join("~");
}
