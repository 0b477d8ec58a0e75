import type { Signal } from "@preact/signals";
import { Fold } from "./fold.tsx";
import { gateNames, type JobFields } from "./read-job-form.ts";
import { gateLimits } from "../../contract/jobs/gate.ts";
import { type GateName, gateTable } from "../../contract/jobs/gate-table.ts";
import { TextField } from "../shared/field.tsx";
import { gateWords } from "../shared/gate-words.ts";

/** Limits on what is measured; empty ones set no limit. */
export function GateFields({ form }: { readonly form: JobFields }) {
  return (
    <fieldset class="labelled">
      <legend>Gates</legend>
      <GateColumns form={form} gates={firstGates} />
      <Fold
        title="More gates"
        summary={describeGates(form)}
        names={foldedGates}
        messages={form.messages.value}
      >
        <GateColumns form={form} gates={otherGates} />
        <p class="soft">
          The next ones need a baseline, which only jobs of a batch with a suite have.
        </p>
        <GateColumns form={form} gates={baselineGates} />
      </Fold>
    </fieldset>
  );
}

/** Gates that most people set. */
const firstGates: readonly GateName[] = ["maxSizeRatio", "minSqnrDb"];
const baselineGates = gateNames.filter((gate) => "change" in gateTable[gate]);
const otherGates = gateNames.filter(
  (gate) => !firstGates.includes(gate) && !baselineGates.includes(gate),
);
const foldedGates = [...otherGates, ...baselineGates];

/** Which of the gates that are folded away are set: `Latency 1.1`. */
function describeGates({ gates }: JobFields): string {
  const set = foldedGates.filter((gate) => gates[gate].value.trim() !== "");
  const texts = set.map((gate) => `${gateTable[gate].title} ${gates[gate].value.trim()}`);
  return texts.length === 0 ? "none set" : texts.join(", ");
}

interface GateColumnsProps {
  readonly form: JobFields;
  readonly gates: readonly GateName[];
}

function GateColumns({ form, gates }: GateColumnsProps) {
  return (
    <div class="columns">
      {gates.map((gate) => (
        <GateField
          key={gate}
          gate={gate}
          text={form.gates[gate]}
          isRefused={form.messages.value[gate] !== undefined}
        />
      ))}
    </div>
  );
}

interface GateFieldProps {
  readonly gate: GateName;
  readonly text: Signal<string>;
  readonly isRefused: boolean;
}

export function GateField({ gate, text, isRefused }: GateFieldProps) {
  const { label, hint } = gateWords[gate];
  return (
    <TextField
      label={label}
      hint={hint}
      error={isRefused ? sayRange(gate) : undefined}
      text={text}
      placeholder="no limit"
      inputMode="decimal"
    />
  );
}

/** What a limit may be. */
function sayRange(gate: GateName): string {
  const { minValue, maxValue } = gateLimits.shape[gate].unwrap();
  if (minValue === null || minValue === -Infinity) return "Enter a number";
  if (maxValue !== null && maxValue !== Infinity) {
    return `Enter a number from ${minValue} to ${maxValue}`;
  }
  return gateLimits.shape[gate].safeParse(minValue).success
    ? `Enter a number that is ${minValue} or more`
    : `Enter a number above ${minValue}`;
}
