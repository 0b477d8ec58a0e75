import { Field } from "../shared/field.tsx";
import type { JobFields } from "./job-fields.ts";

const hint = "JSON; fields that are left out come from the target. Targets lists its recipes.";
const mostRows = 24;

/** The recipe's fields besides the scheme, for those who change them. */
export function RecipeText({ form: { recipe, messages } }: { readonly form: JobFields }) {
  const error = messages.value["recipe"];
  const isOpen = recipe.peek() !== "" || error !== undefined;
  return (
    <details class="more-fields" open={isOpen}>
      <summary>More of the recipe</summary>
      <Field label="Other fields of the recipe" hint={hint} error={error}>
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
    </details>
  );
}
