import type { Target } from "../../contract/jobs/target.ts";
import { MaybeError } from "../shared/notice.tsx";
import { PageHead } from "../shared/page-head.tsx";
import { useTargets } from "../live/use-targets.ts";

/** For what models can be compressed, and what is done to them by default. */
export function TargetsPage() {
  const { targets, error, reload } = useTargets();
  return (
    <main id="main">
      <PageHead title="Targets" />
      <MaybeError error={error} retry={reload} />
      <div class="sheet">
        {targets.map((target) => (
          <TargetCard key={target.name} target={target} />
        ))}
      </div>
    </main>
  );
}

function TargetCard({ target }: { readonly target: Target }) {
  return (
    <section class="card c4">
      <header>
        <h2>{target.name}</h2>
        <span class="dim">{target.executionProvider}</span>
        <span class="grow" />
        <a href={`/jobs?target=${target.name}`}>Show jobs</a>
      </header>
      <p class="card-text soft">{target.description}</p>
      <dl class="pairs">
        {Object.entries(listTargetFacts(target)).map(([name, text]) => (
          <div key={name} class="pair">
            <dt>{name}</dt>
            <dd class="mono">{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function listTargetFacts({ recipe, operators, presets, gpu, instructionSets }: Target) {
  return {
    scheme: recipe.scheme ?? "automatic",
    operators,
    presets: Object.keys(presets).join(", ") || "none",
    "instruction sets": instructionSets?.join(", ") ?? "any",
    GPU: gpu === undefined ? "none" : `${gpu.count} × ${gpu.resource}`,
  };
}
