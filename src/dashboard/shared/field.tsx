import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  /** The input, which takes the ids of its label and its hint. */
  readonly children: (ids: { id: string; describedBy: string }) => ComponentChildren;
}

/** A labelled input with a hint, or what is wrong with it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const describedBy = `${id}-hint`;
  return (
    <div class="labelled">
      <label htmlFor={id}>{label}</label>
      {children({ id, describedBy })}
      <p id={describedBy} class={error === undefined ? "soft" : "bad"}>
        {error ?? hint}
      </p>
    </div>
  );
}
