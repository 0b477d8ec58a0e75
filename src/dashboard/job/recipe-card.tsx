import { Fragment } from "preact";
import type { Recipe } from "../../contract/recipe.ts";

/** The effective recipe, field by field. */
export function RecipeCard({ recipe }: { readonly recipe: Recipe }) {
  return (
    <section class="card">
      <header>
        <h2>Recipe</h2>
      </header>
      <dl class="pairs">
        {flattenFields(recipe).map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd class="mono">{value}</dd>
          </Fragment>
        ))}
      </dl>
    </section>
  );
}

/** Fields with their values as texts; those of objects behind their names. */
function flattenFields(fields: object, prefix = ""): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]: [string, unknown]) => {
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isNested) return flattenFields(value, `${prefix}${name}.`);
    const text = Array.isArray(value) ? value.join(", ") || "none" : String(value);
    return [[`${prefix}${name}`, text]];
  });
}
