import { useEffect } from "preact/hooks";
import { granularitiesByScheme } from "../../contract/jobs/recipe.ts";
import type { JobKind } from "../../contract/jobs/status.ts";
import { jsonValue } from "../../contract/text/json-value.ts";
import { Field, SelectField } from "../shared/field.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { useTargets } from "../live/use-targets.ts";
import { Fold } from "./fold.tsx";
import { chooseScheme, type JobFields } from "./read-job-form.ts";

/** For which target, and by which scheme. */
export function RecipeFields({ form }: { readonly form: JobFields }) {
  const { targets, error, reload } = useTargets();
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
      <SelectField
        label="Target"
        hint={chosen?.description ?? ""}
        value={target.value}
        options={targets.map(({ name }) => [name, name])}
        onChange={(name) => (target.value = name)}
      />
      <SelectField
        label="Scheme"
        hint={schemeNote.value}
        value={scheme.value}
        options={[["", own], ...schemes]}
        onChange={(name) => chooseScheme(form, name)}
      />
    </>
  );
}

const hint =
  "JSON. Fields that you leave out come from the target; the page “Targets” lists its recipes.";
const mostRows = 24;

/** The kind of the job, and the recipe's fields besides the scheme. */
export function AdvancedFields({ form }: { readonly form: JobFields }) {
  const { kind, recipe, messages } = form;
  const error = messages.value["recipe"];
  return (
    <Fold
      title="Kind and other recipe fields"
      summary={`${kind.value}, ${describeRecipeText(recipe.value)}`}
      names={["recipe"]}
      messages={messages.value}
    >
      <KindField form={form} />
      <Field label="Other recipe fields" hint={hint} error={error}>
        {({ id, describedBy }) => (
          <textarea
            id={id}
            class="mono"
            rows={Math.min(mostRows, recipe.peek().split("\n").length + 2)}
            spellcheck={false}
            placeholder={'{ "granularity": "channel" }'}
            aria-describedby={describedBy}
            aria-invalid={error !== undefined}
            value={recipe.value}
            onInput={({ currentTarget }) => (recipe.value = currentTarget.value)}
          />
        )}
      </Field>
    </Fold>
  );
}

const mostNamed = 3;

/** Which recipe fields are set. */
function describeRecipeText(text: string): string {
  const fields = text.trim() === "" ? {} : jsonValue.safeParse(text).data;
  if (typeof fields !== "object" || fields === null) return "not a JSON object";
  const names = Object.keys(fields);
  if (names.length === 0) return "the target's recipe";
  return names.length > mostNamed ? `${names.length} recipe fields set` : names.join(", ");
}

const kinds: Readonly<Record<JobKind, string>> = {
  compress: "The usual choice: weights are cut into shards, so that models of any size fit",
  quantize: "In one piece, without shards",
};

function KindField({ form: { kind } }: { readonly form: JobFields }) {
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
