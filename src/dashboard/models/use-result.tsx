import { useSignal } from "@preact/signals";
import { type ModelInterface, loadInterface } from "./load-interface.ts";
import { snippets } from "./snippets.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { useLive } from "../live/use-live.ts";
import { Command } from "../shared/button.tsx";
import { Choices } from "../shared/choices.tsx";
import { TableHead } from "../shared/table-head.tsx";

/** What a model takes and gives, and how a program runs the result. */
export function UseResult({ jobs }: { readonly jobs: readonly JobSummary[] }) {
  const job = jobs.find(
    ({ status, figures }) => status === "Completed" && figures.resultBytes !== null,
  );
  const { value } = useLive(async () => job && loadInterface(job.id), { of: [job?.id] });
  if (value === undefined) return undefined;
  return (
    <>
      <InterfaceCard model={value} />
      <SnippetCard model={value} />
    </>
  );
}

interface InterfaceProps {
  readonly model: ModelInterface;
}

const columns = { Name: "", Side: "", Type: "" };

function InterfaceCard({ model: { opset, inputs, outputs } }: InterfaceProps) {
  const values = [
    ...inputs.map((value) => ({ ...value, side: "input" })),
    ...outputs.map((value) => ({ ...value, side: "output" })),
  ];
  return (
    <section class="card c5">
      <header>
        <h2>Inputs and outputs</h2>
        <span class="dim">{opset === null ? "no opset" : `opset ${opset}`}</span>
      </header>
      <div class="scrolled" tabIndex={0} role="region" aria-label="Inputs and outputs">
        <table>
          <TableHead columns={columns} />
          <tbody>
            {values.map(({ name, type, side }) => (
              <tr key={`${side} ${name}`}>
                <td class="mono">{name}</td>
                <td class="soft">{side}</td>
                <td class="mono">{type}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

type Language = keyof typeof snippets;
const languages = Object.keys(snippets) as Language[];

function SnippetCard({ model }: InterfaceProps) {
  const language = useSignal<Language>("Python");
  return (
    <section class="card c7">
      <header>
        <h2>Use the result</h2>
        <span class="dim">with ONNX Runtime</span>
        <span class="grow" />
        <Choices
          label="Language"
          names={languages}
          chosen={language.value}
          onChoose={(name) => (language.value = name)}
        />
      </header>
      <div class="snippets">
        <Command text={snippets[language.value](model)} label={`${language.value} program`} />
      </div>
    </section>
  );
}
