import { useEffect } from "preact/hooks";
import { termTable } from "../../contract/jobs/terms.ts";
import { PageHead } from "../shared/page-head.tsx";

/** What the words mean that the other pages use. */
export function TermsPage() {
  useEffect(() => document.getElementById(location.hash.slice(1))?.scrollIntoView(), []);
  return (
    <main id="main">
      <PageHead title="Terms" />
      <dl class="card terms">
        {Object.entries(termTable).map(([name, { title, meaning }]) => (
          <div key={name} id={name}>
            <dt>{title}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </main>
  );
}
