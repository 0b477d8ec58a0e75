import type { Signal } from "@preact/signals";
import { Field } from "./field.tsx";

interface TextFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  /** What is typed. */
  readonly text: Signal<string>;
  readonly placeholder?: string;
  readonly inputMode?: "decimal";
}

/** A labelled line of text; names and addresses are no words to spell. */
export function TextField({ text, placeholder, inputMode, ...field }: TextFieldProps) {
  return (
    <Field {...field}>
      {({ id, describedBy }) => (
        <input
          id={id}
          inputMode={inputMode}
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          aria-describedby={describedBy}
          aria-invalid={field.error !== undefined}
          value={text.value}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      )}
    </Field>
  );
}
