// Single people, read when they are first looked at; only pages that were asked to hold them have any.
import type { Book } from "./book";
import type { Columns } from "./source";
import { table } from "./source";

export interface Facet {
  name: string;
  title: string;
  values: string[];
}

export interface People {
  run: number;
  n: number;
  ids: string[];
  facets: Facet[];
  /** The groups of each person: one number, or several. */
  groups: (number | number[])[][];
  columns: Columns;
}

const known = new Map<string, Promise<People | null>>();

export function people(book: Book, run: number): Promise<People | null> {
  const name = `people-${run}`;
  let found = known.get(name);
  if (!found) {
    found = table(name).then((columns) => {
      if (!columns) return null;
      const ids = columns["unit_id"] as string[];
      const facets = book.said.people[run]?.attributes ?? [];
      const groups = facets.map((_, i) => columns[`a${i}`] as (number | number[])[]);
      return { run, n: ids.length, ids, facets, groups, columns };
    });
    known.set(name, found);
  }
  return found;
}

/** Scores in one model and line; null where nobody has one. */
export function scoresOf(held: People, model: number, line: number): (number | null)[] | null {
  return (held.columns[`s${model}_${line}`] as (number | null)[] | undefined) ?? null;
}

export function reasonOf(held: People, model: number, line: number, person: number): string | null {
  return (held.columns[`r${model}_${line}`]?.[person] as string | null | undefined) ?? null;
}

export function textOf(held: People, column: string, person: number): string | null {
  const found = held.columns[column]?.[person];
  return found === null || found === undefined ? null : String(found);
}

export function inGroup(of: number | number[] | null | undefined, group: number): boolean {
  return Array.isArray(of) ? of.includes(group) : of === group;
}

export function groupNames(held: People, facet: number, person: number): string {
  const of = held.groups[facet]?.[person];
  const numbers = Array.isArray(of) ? of : of === undefined || of === null || of < 0 ? [] : [of];
  return numbers.map((i) => held.facets[facet]!.values[i]).join(", ");
}

export type Picked = Map<string, Set<string>>;

/** What is picked, as it stands in the address. */
export function readPicked(text: string): Picked {
  const found: Picked = new Map();
  for (const [name, value] of new URLSearchParams(text)) {
    const values = found.get(name) ?? new Set();
    values.add(value);
    found.set(name, values);
  }
  return found;
}

export function pickedText(picked: Picked): string {
  const said = new URLSearchParams();
  for (const [name, values] of picked) for (const value of values) said.append(name, value);
  return said.toString();
}

export interface Tally {
  n: number; // people who have a score
  sum: number;
}

export interface Selection {
  chosen: number[]; // people who fit every choice and the search
  tallies: Tally[][]; // for each attribute and group, of people who fit all other choices
}

/** Choose people by several attributes at once; each attribute's counts leave out its own choice. */
export function select(held: People, scores: (number | null)[], picked: Picked, fits: ((id: string) => boolean) | null): Selection {
  const wanted = held.facets.map((facet) => {
    const values = picked.get(facet.name);
    if (!values?.size) return null;
    return new Set([...values].map((value) => facet.values.indexOf(value)));
  });
  const tallies = held.facets.map((facet) => facet.values.map(() => ({ n: 0, sum: 0 })));
  const chosen: number[] = [];
  const facets = held.facets.length;
  const bad = new Uint8Array(facets);
  for (let i = 0; i < held.n; i++) {
    const score = scores[i] ?? null;
    if (fits && !fits(held.ids[i]!)) continue;
    let misses = 0;
    for (let f = 0; f < facets; f++) {
      const set = wanted[f];
      const of = held.groups[f]![i];
      const missed = set ? !(Array.isArray(of) ? of.some((one) => set.has(one)) : set.has(of as number)) : false;
      bad[f] = missed ? 1 : 0;
      if (missed) misses++;
    }
    if (misses === 0) chosen.push(i);
    if (misses > 1 || score === null) continue;
    for (let f = 0; f < facets; f++) {
      if (misses === 1 && !bad[f]) continue;
      const of = held.groups[f]![i];
      for (const one of Array.isArray(of) ? of : [of as number]) {
        const tally = tallies[f]![one];
        if (tally) {
          tally.n++;
          tally.sum += score;
        }
      }
    }
  }
  return { chosen, tallies };
}
