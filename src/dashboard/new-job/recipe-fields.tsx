import { useEffect } from "preact/hooks";
import { granularitiesByScheme } from "../../contract/jobs/recipe.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import type { Target } from "../../contract/jobs/target.ts";
import { service } from "../session/service.ts";
import { Field } from "../shared/field.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useLive } from "../live/use-live.ts";
import { chooseScheme, type JobFields } from "./read-job-form.ts";

const kinds: Readonly<Record<JobKind, string>> = {
  compress: "The usual choice: weights are cut into shards, so that models of any size fit",
  quantize: "In one piece, without shards",
};

export function KindField({ form: { kind } }: { readonly form: JobFields }) {
  return (
    <fieldset class="labelled">
      <legend>Kind</legend>
      {(["compress", "quantize"] as const).map((each) => (
        <label key={each} class="choice">
          <input
            type="radio"
            name="kind"
            checked={kind.value === each}
            onChange={() => (kind.value = each)}
          />
          <code>{each}</code>
          <span class="soft">{kinds[each]}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** For which target, and by which scheme. */
export function RecipeFields({ form }: { readonly form: JobFields }) {
  const { value: targets = [], error, reload } = useLive(loadTargets);
  const { target, scheme, schemeNote } = form;
  const chosen = targets.find(({ name }) => name === target.value);
  useEffect(() => {
    if (target.peek() === "") target.value = targets[0]?.name ?? "";
  }, [targets]);
  const own = `Default of the target: ${chosen?.recipe.scheme ?? "automatic"}`;
  const schemes = Object.keys(granularitiesByScheme).map((name) => [name, name] as const);
  return (
    <>
      <MaybeError error={error} retry={reload} />
      <Choice
        label="Target"
        hint={chosen?.description ?? ""}
        value={target.value}
        options={targets.map(({ name }) => [name, name])}
        onChange={(name) => (target.value = name)}
      />
      <Choice
        label="Scheme"
        hint={schemeNote.value}
        value={scheme.value}
        options={[["", own], ...schemes]}
        onChange={(name) => chooseScheme(form, name)}
      />
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  /** Values with their texts. */
  readonly options: readonly (readonly [string, string])[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, hint, value, options, onChange }: ChoiceProps) {
  return (
    <Field label={label} hint={hint}>
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

async function loadTargets(): Promise<readonly Target[]> {
  return (await service.call("listTargets", {})).targets;
}
