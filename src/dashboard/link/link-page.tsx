import "./link.css";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { readLink } from "./link-address.ts";
import { describeLimit } from "../../contract/jobs/describe-gate.ts";
import { describeRecipe } from "../shared/describe-recipe.ts";
import type { LinkedFile, LinkedResult } from "../../contract/routes/artifact-routes.ts";
import { sayWeightFiles } from "../../contract/jobs/weight-files.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { formatDecibels } from "../../contract/text/format-figure.ts";
import { formatRatio } from "../../contract/jobs/latency.ts";
import { type TermName, termTable } from "../../contract/jobs/terms.ts";
import { ProblemError } from "../../client/problem-error.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { Command, Icon } from "../shared/button.tsx";
import { Choices } from "../shared/choices.tsx";
import { toLatencyRatio } from "../shared/figures.ts";
import { formatExactTime } from "../shared/format.ts";
import { describeActual, lacksBaseline } from "../shared/gate-words.ts";
import { Loading, MaybeError } from "../shared/notice.tsx";
import { useTitle } from "../shared/page-head.tsx";
import { ToneSign } from "../shared/status.tsx";
import { isShippable, judgeJob } from "../shared/verdict.ts";
import { Brand } from "../sign-in/brand.tsx";

/** What somebody sees who has a link to a file, and need not be known here. */
export function LinkPage() {
  const { value, error, reload } = useLive(() => service.call("describeLink", readLink(location)));
  return (
    <main id="main" class="link-page">
      <Brand />
      {isOver(error) ? <NoLink error={error} /> : <MaybeError error={error} retry={reload} />}
      {value === undefined && error === undefined && <Loading />}
      {value && <FileCard file={value} />}
      {value?.result && <ResultCard result={value.result} />}
      {value?.name.endsWith(".onnx") && <ProgramCard name={value.name} />}
    </main>
  );
}

function isOver(error: unknown): error is ProblemError {
  return error instanceof ProblemError && error.problem.status < 500;
}

function NoLink({ error: { problem } }: { readonly error: ProblemError }) {
  const title = problem.code === "link_expired" ? "This link has ended" : "No such link";
  useTitle(title);
  return (
    <div class="empty">
      <h1>{title}</h1>
      <p class="soft">
        {problem.code === "link_expired"
          ? `${problem.detail}. `
          : "It was ended, its job was deleted, or the address is not complete. "}
        Ask whoever sent it for another one.
      </p>
    </div>
  );
}

function FileCard({ file }: { readonly file: LinkedFile }) {
  const { name, bytes, sha256, expiresAt, weightFiles, result } = file;
  const title = result === null ? name : `${result.model} for ${result.target}`;
  useTitle(title);
  const isGood = result === null || isShippable({ ...result, baseline: null });
  return (
    <section class="card link-file">
      <h1 class="title">
        {title}
        {result && <ToneSign {...judgeJob({ ...result, baseline: null })} />}
      </h1>
      {!isGood && (
        <p class="bad">Not every gate passes: whoever sent this may want you to see why first.</p>
      )}
      <p>
        <a class={isGood ? "button main" : "button"} href={downloadAddress()} download={name}>
          <Icon name="down" />
          Download {name}, {formatBytes(bytes)}
        </a>
      </p>
      {weightFiles && (
        <p class="warn">
          {sayWeightFiles(name, weightFiles)}. Ask whoever sent this for a link to{" "}
          {weightFiles.archive === null ? (
            "each of them too."
          ) : (
            <>
              <code>{weightFiles.archive}</code>, which has the model with all of them.
            </>
          )}
        </p>
      )}
      <dl class="pairs">
        <dt>SHA-256</dt>
        <dd class="mono cut-anywhere">{sha256}</dd>
        <dt>Valid until</dt>
        <dd>{formatExactTime(Date.parse(expiresAt))}</dd>
      </dl>
    </section>
  );
}

/** With the mark that gives browsers the file. */
function downloadAddress(): string {
  const address = new URL(location.href);
  address.searchParams.set("download", "1");
  return address.pathname + address.search;
}

function ResultCard({ result }: { readonly result: LinkedResult }) {
  return (
    <section class="card">
      <header>
        <h2>What it is</h2>
      </header>
      <dl class="pairs">
        {listFacts(result).map(({ name, term, text }) => [
          <dt key={name} title={term && termTable[term].meaning}>
            {name}
          </dt>,
          <dd key={`${name} value`}>{text}</dd>,
        ])}
      </dl>
      <GateLines gates={result.gates} />
    </section>
  );
}

interface Fact {
  readonly name: string;
  readonly term?: TermName;
  readonly text: ComponentChildren;
}

function listFacts(result: LinkedResult): Fact[] {
  const { figures, warnings } = result;
  const { originalBytes, resultBytes, sizeRatio, sqnrDb } = figures;
  const latency = toLatencyRatio(figures);
  const size =
    resultBytes === null || originalBytes === null || sizeRatio === null
      ? "not measured"
      : `${formatBytes(resultBytes)}, ${Math.round(100 * sizeRatio)} % of ${formatBytes(originalBytes)}`;
  return [
    { name: "Model", term: "model", text: result.model },
    { name: "Target", term: "target", text: result.target },
    { name: "Recipe", term: "recipe", text: describeRecipe(result) },
    { name: "Size", text: size },
    {
      name: "Accuracy (SQNR)",
      term: "sqnr",
      text: sqnrDb === null ? "not measured" : formatDecibels(sqnrDb),
    },
    {
      name: "Latency, relative to the original",
      term: "latency",
      text: latency === undefined ? "not measured" : formatRatio(latency),
    },
    { name: "Warnings", text: warnings === 0 ? "none" : String(warnings) },
  ];
}

function GateLines({ gates }: Pick<LinkedResult, "gates">) {
  const known = gates.filter((gate) => !lacksBaseline(gate, false));
  if (known.length === 0) return undefined;
  return (
    <ul class="list">
      {known.map((gate) => {
        const tone = gate.passed ? "calm" : gate.level === "fail" ? "bad" : "warn";
        const icon = gate.passed ? "check" : tone === "bad" ? "bad" : "warn";
        return (
          <li key={gate.gate}>
            <ToneSign tone={tone} icon={icon} words={gate.passed ? "passes" : "does not pass"} />
            <span class="grow">
              {describeLimit(gate)}; it is {describeActual(gate)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

const programs = {
  Python: (name: string) => [
    "import onnxruntime as ort",
    "",
    `session = ort.InferenceSession(${JSON.stringify(name)})`,
    "for value in session.get_inputs():",
    "    print(value.name, value.type, value.shape)",
  ],
  JavaScript: (name: string) => [
    'import * as ort from "onnxruntime-node"; // in browsers "onnxruntime-web"',
    "",
    `const session = await ort.InferenceSession.create(${JSON.stringify(name)});`,
    "console.log(session.inputNames, session.outputNames);",
  ],
} as const;
type Language = keyof typeof programs;
const languages = Object.keys(programs) as Language[];

/** How a program loads the file, and finds what it takes. */
function ProgramCard({ name }: { readonly name: string }) {
  const language = useSignal<Language>("Python");
  return (
    <section class="card">
      <header>
        <h2>Load it</h2>
        <span class="dim">with ONNX Runtime</span>
        <span class="grow" />
        <Choices
          label="Language"
          names={languages}
          chosen={language.value}
          onChoose={(name) => (language.value = name)}
        />
      </header>
      <Command
        text={programs[language.value](name).join("\n")}
        label={`${language.value} program`}
      />
    </section>
  );
}
