import { gateNames, type JobFields, type OfferedGate, offeredGates } from "./job-fields.ts";
import { TextField } from "../shared/text-field.tsx";

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
  return (
    <TextField
      label={offeredGates[gate]}
      error={form.messages.value[gate] && "A number"}
      text={form.gates[gate]}
      placeholder="no limit"
      inputMode="decimal"
    />
  );
}
