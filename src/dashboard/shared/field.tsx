import type { Signal } from "@preact/signals";
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

interface TextFieldProps extends Omit<FieldProps, "children"> {
  readonly text: Signal<string>;
  readonly placeholder?: string;
  readonly inputMode?: "decimal";
}

/** A labelled line of text; names and addresses are not spell-checked. */
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

interface SelectFieldProps extends Omit<FieldProps, "children"> {
  readonly value: string;
  /** Values with their texts. */
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

/** A labelled choice of one value. */
export function SelectField({ value, options, onChange, ...field }: SelectFieldProps) {
  return (
    <Field {...field}>
      {({ id, describedBy }) => (
        <select
          id={id}
          aria-describedby={describedBy}
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        >
          {options.map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
