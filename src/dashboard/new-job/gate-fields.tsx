import { gateNames, type JobFields, type OfferedGate, offeredGates } from "./job-fields.ts";
import { Field } from "../shared/field.tsx";

/** Limits on what is measured; empty ones are none. */
export function GateFields({ form }: { readonly form: JobFields }) {
  return (
    <fieldset class="labelled">
      <legend>Gates</legend>
      <div class="columns">
        {gateNames.map((gate) => (
          <GateField key={gate} form={form} gate={gate} />
        ))}
      </div>
    </fieldset>
  );
}

function GateField({ form, gate }: { readonly form: JobFields; readonly gate: OfferedGate }) {
  const typed = form.gates[gate];
  const error = form.messages.value[gate];
  return (
    <Field label={offeredGates[gate]} error={error && "A number"}>
      {({ id, describedBy }) => (
        <input
          id={id}
          inputMode="decimal"
          autocomplete="off"
          placeholder="no limit"
          aria-describedby={describedBy}
          aria-invalid={error !== undefined}
          value={typed.value}
          onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
        />
      )}
    </Field>
  );
}
