// Which rows are shown and in what order: pure functions, so that a click costs milliseconds.
import type { Group } from "./data/tables";
import { isComparable } from "./words";

export type Key = "group" | "n_units" | "value" | "difference" | "difference_p" | "status" | "change";

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Parts of a search: words in any order, all of which a name must hold. */
export function matcher(q: string): (text: string) => boolean {
  const words = q.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const low = text.toLocaleLowerCase();
    return words.every((word) => low.includes(word));
  };
}

export function isJudged(group: { value: number | null; status: string }): boolean {
  return group.value !== null && isComparable(group.status);
}

export function shown(group: Group, show: string, alpha: number): boolean {
  if (show === "judged") return isJudged(group);
  if (show === "unjudged") return !isJudged(group);
  if (show === "differ") return group.difference_p !== null && group.difference_p <= alpha;
  return true;
}

/** Sort by a column; what is null stays last, either way. Equal rows keep their order. */
export function sorted<Row>(rows: Row[], key: (row: Row) => number | string | null, falling: boolean): Row[] {
  const sign = falling ? -1 : 1;
  const keyed = rows.map((row, at) => ({ row, at, key: key(row) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) {
      return Number(a.key === null) - Number(b.key === null) || a.at - b.at;
    }
    const order =
      typeof a.key === "number" && typeof b.key === "number"
        ? a.key - b.key
        : collator.compare(String(a.key), String(b.key));
    return sign * order || a.at - b.at;
  });
  return keyed.map((item) => item.row);
}
