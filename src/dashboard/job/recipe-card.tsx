import { Fragment } from "preact";
import type { Recipe } from "../../contract/jobs/recipe.ts";
import { flattenFields } from "./flatten-fields.ts";

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
