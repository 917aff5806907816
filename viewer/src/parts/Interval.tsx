import type { Scale } from "./scale";

interface Mark {
  value: number | null;
  low: number | null;
  high: number | null;
  hollow?: boolean;
  strong?: boolean;
}

/** A value with its interval, drawn on a scale; a line marks everyone's value. */
export function Interval({ marks, scale, everyone }: { marks: Mark[]; scale: Scale; everyone: number | null }) {
  const one = marks.length === 1;
  return (
    <svg class="interval" aria-hidden="true" focusable="false">
      {everyone === null ? null : (
        <line class="overall" x1={`${scale.at(everyone)}%`} x2={`${scale.at(everyone)}%`} y1="0" y2="100%" />
      )}
      {marks.map((mark, i) => {
        if (mark.value === null) return null;
        const y = one ? "50%" : i === 0 ? "36%" : "66%";
        const kind = `${mark.strong ? "strong" : ""} ${i > 0 ? "second" : ""}`;
        return (
          <g class={kind} key={i}>
            {mark.low === null || mark.high === null ? null : (
              <line class="whisker" x1={`${scale.at(mark.low)}%`} x2={`${scale.at(mark.high)}%`} y1={y} y2={y} />
            )}
            <circle class={mark.hollow ? "hollow" : ""} cx={`${scale.at(mark.value)}%`} cy={y} r={one ? 4.5 : 4} />
          </g>
        );
      })}
    </svg>
  );
}
