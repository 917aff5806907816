import type { ComponentChildren } from "preact";

export interface Choice {
  value: string;
  text: string;
  under?: string; // the heading that it stands under
}

/** A labelled list to choose from. */
export function Choose(props: { label: string; value: string; choices: Choice[]; onChange: (value: string) => void; class?: string }) {
  const heads = [...new Set(props.choices.map((choice) => choice.under ?? ""))];
  const option = (choice: Choice) => (
    <option key={choice.value} value={choice.value} selected={choice.value === props.value}>{choice.text}</option>
  );
  return (
    <label class={`field ${props.class ?? ""}`}>
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {heads.map((head) => {
          const own = props.choices.filter((choice) => (choice.under ?? "") === head).map(option);
          return head ? <optgroup label={head} key={head}>{own}</optgroup> : own;
        })}
      </select>
    </label>
  );
}

/** A labelled box to search by. */
export function Search(props: { label: string; value: string; onInput: (value: string) => void }) {
  return (
    <label class="field search">
      <span>{props.label}</span>
      <input type="search" value={props.value} autocomplete="off" spellcheck={false} onInput={(event) => props.onInput(event.currentTarget.value)} />
    </label>
  );
}

export function Note({ children }: { children: ComponentChildren }) {
  return <p class="note">{children}</p>;
}
