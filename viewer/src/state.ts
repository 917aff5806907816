// What one sees, kept in the address: a link shows the same again.
import { useEffect, useState } from "preact/hooks";

export type View = "groups" | "findings" | "compare" | "people" | "figures" | "about";

export interface State {
  view: View;
  model: string;
  versus: string; // the second model of a comparison
  metric: string; // a line's key
  by: string; // an attribute's name; "": all of them
  q: string; // what is searched for
  show: string; // all, judged, unjudged, differ
  sort: string; // a column; "-value": falling
  draw: string; // intervals or spread
  group: string; // the group that is open
  of: string; // its attribute
  pick: string; // people's filter: attribute~value pairs
  person: string;
}

const EMPTY: State = {
  view: "groups", model: "", versus: "", metric: "", by: "", q: "", show: "all", sort: "",
  draw: "intervals", group: "", of: "", pick: "", person: "",
};
const VIEWS: View[] = ["groups", "findings", "compare", "people", "figures", "about"];

export function parse(hash: string): State {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const found = { ...EMPTY };
  for (const key of Object.keys(EMPTY) as (keyof State)[]) {
    const value = said.get(key);
    if (value !== null) (found as Record<string, string>)[key] = value;
  }
  if (!VIEWS.includes(found.view)) found.view = "groups";
  return found;
}

export function hashOf(state: State): string {
  const said = new URLSearchParams();
  for (const key of Object.keys(EMPTY) as (keyof State)[]) {
    if (state[key] !== EMPTY[key]) said.set(key, state[key]);
  }
  return `#${said.toString()}`;
}

export interface Store {
  state: State;
  /** Change what is seen; ``step``: the browser's "back" undoes it. */
  set: (change: Partial<State>, step?: boolean) => void;
}

export function useStore(): Store {
  const [state, put] = useState(() => parse(location.hash));
  useEffect(() => {
    const follow = () => put(parse(location.hash));
    window.addEventListener("hashchange", follow);
    window.addEventListener("popstate", follow);
    return () => {
      window.removeEventListener("hashchange", follow);
      window.removeEventListener("popstate", follow);
    };
  }, []);
  const set = (change: Partial<State>, step = false) => {
    const next = { ...parse(location.hash), ...change };
    const hash = hashOf(next);
    if (hash === hashOf(parse(location.hash))) return;
    history[step ? "pushState" : "replaceState"](null, "", hash === "#" ? location.pathname + location.search : hash);
    put(next);
  };
  return { state, set };
}
