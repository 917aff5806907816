// A drawing as text becomes elements only if it holds nothing but shapes and words.
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Figure } from "../data/tables";

const SHAPES = new Set(["svg", "g", "path", "line", "text", "tspan", "rect", "title"]);

function safe(element: Element): boolean {
  return SHAPES.has(element.localName)
    && [...element.attributes].every((one) => !/^on|href$|^style$|^id$|^class$/i.test(one.name) && (!/url\(/i.test(one.value) || /^url\(#hatch\)$/.test(one.value)))
    && [...element.children].every(safe);
}

function parsed(text: string): SVGElement | null {
  const found = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return found.localName === "svg" && safe(found) ? (document.importNode(found, true) as unknown as SVGElement) : null;
}

const PHONE = 460; // a wider drawing is scrolled on a phone: scaled down, its words would be too small

export function Drawing({ figure }: { figure: Figure }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const drawn = parsed(figure.svg);
    place.current?.replaceChildren(drawn ?? "This drawing cannot be read.");
  }, [figure.svg]);
  const wide = Number(/viewBox="\S+ \S+ ([\d.]+)/.exec(figure.svg)?.[1] ?? 0) > PHONE;
  return (
    <figure class="drawing">
      <div class={`scroll${wide ? " wide" : ""}`} role="img" aria-label={figure.alt} tabIndex={0} ref={place} />
      <figcaption class="note">{figure.caption}</figcaption>
    </figure>
  );
}
