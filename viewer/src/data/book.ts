// Everything that the page holds, read once, with the ways to look things up.
import { lineKey, type Manifest } from "./manifest";
import { manifest, table } from "./source";
import { rows, type Change, type Distribution, type Figure, type Finding, type Group, type Move, type Pair, type Test } from "./tables";

export interface Book {
  said: Manifest;
  groups: Group[];
  pairs: Pair[];
  tests: Test[];
  changes: Change[];
  moves: Move[];
  findings: Finding[];
  figures: Figure[];
  spread: Map<string, Distribution>;
  /** Rows of one model, line and attribute (-1: everyone). */
  of: (model: number, line: number, attribute: number) => Group[];
  everyone: (model: number, line: number) => Group | null;
  /** The lines and attributes of which a model has rows, in the order of reading. */
  linesOf: (model: number) => number[];
  attributesOf: (model: number, line: number) => number[];
}

export function place(model: number, line: number, attribute: number, group = ""): string {
  return `${model}\u0000${line}\u0000${attribute}\u0000${group}`;
}

export async function read(): Promise<Book> {
  const said = manifest();
  const names = ["groups", "pairs", "tests", "changes", "findings", "distributions", "moves", ...(said.holds.figures ? ["figures"] : [])];
  const [groups, pairs, tests, changes, findings, spread, moves, figures] = await Promise.all(names.map(table));
  const all = rows<Group>(groups ?? null);
  const by = new Map<string, Group[]>();
  for (const group of all) {
    const key = place(group.model, group.line, group.attribute);
    const found = by.get(key);
    if (found) found.push(group);
    else by.set(key, [group]);
  }
  const lines = new Map<number, Set<number>>();
  const attributes = new Map<string, Set<number>>();
  for (const { model, line, attribute } of all) {
    if (!lines.has(model)) lines.set(model, new Set());
    lines.get(model)!.add(line);
    const key = place(model, line, 0);
    if (!attributes.has(key)) attributes.set(key, new Set());
    if (attribute >= 0) attributes.get(key)!.add(attribute);
  }
  const rising = (found: Set<number> | undefined) => [...(found ?? [])].sort((a, b) => a - b);
  const of = (model: number, line: number, attribute: number) => by.get(place(model, line, attribute)) ?? [];
  return {
    said,
    groups: all,
    pairs: rows<Pair>(pairs ?? null),
    tests: rows<Test>(tests ?? null),
    changes: rows<Change>(changes ?? null),
    moves: rows<Move>(moves ?? null),
    findings: rows<Finding>(findings ?? null),
    figures: rows<Figure>(figures ?? null),
    spread: new Map(rows<Distribution>(spread ?? null).map((one) => [place(one.model, one.line, one.attribute, one.group), one])),
    of,
    everyone: (model, line) => of(model, line, -1)[0] ?? null,
    linesOf: (model) => rising(lines.get(model)),
    attributesOf: (model, line) => rising(attributes.get(place(model, line, 0))),
  };
}

/** What an address names, or the first there is. */
export function chosen(book: Book, said: { model: string; metric: string; by: string }) {
  const model = Math.max(0, book.said.models.findIndex((one) => one.name === said.model));
  const lines = book.linesOf(model);
  const line = lines.find((i) => lineKey(book.said.lines[i]!) === said.metric) ?? lines[0] ?? 0;
  const attribute = book.said.attributes.findIndex((one) => one.name === said.by);
  return { model, line, lines, attribute };
}
