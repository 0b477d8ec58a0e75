import { describeLimit } from "../../contract/jobs/describe-gate.ts";
import { gateTable } from "../../contract/jobs/gate-table.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { Icon } from "../shared/button.tsx";
import { describeActual, type GateResult, gateWords, lacksBaseline } from "../shared/gate-words.ts";
import { Term } from "../shared/term.tsx";

/** The limits of a job, and which of them its figures keep. */
export function GateList({ job: { gates, baseline } }: { readonly job: JobDetail }) {
  if (gates.length === 0) return undefined;
  const open = gates.filter((gate) => lacksBaseline(gate, baseline !== null)).length;
  const passed = gates.filter((gate) => gate.passed).length;
  return (
    <section class="card">
      <header>
        <h2>
          <Term name="gate">Gates</Term>
        </h2>
        <span class="dim">
          {passed} of {gates.length - open} passed
        </span>
      </header>
      <ul class="list">
        {gates.map((gate) => (
          <GateRow key={gate.gate} gate={gate} isOpen={lacksBaseline(gate, baseline !== null)} />
        ))}
      </ul>
    </section>
  );
}

const looks = {
  passed: { tone: "calm", icon: "check", words: "passed" },
  open: { tone: "off", icon: "same", words: "no baseline yet" },
  warn: { tone: "warn", icon: "warn", words: "did not pass: warn" },
  fail: { tone: "bad", icon: "bad", words: "did not pass: fail" },
} as const;

interface GateRowProps {
  readonly gate: GateResult;
  /** Whether there is nothing to compare with. */
  readonly isOpen: boolean;
}

function GateRow({ gate, isOpen }: GateRowProps) {
  const { tone, icon, words } = looks[isOpen ? "open" : gate.passed ? "passed" : gate.level];
  const { formatBaseline } = gateWords[gate.gate];
  const { title } = gateTable[gate.gate];
  const baseline = gate.baseline !== null && formatBaseline?.(gate.baseline);
  return (
    <li title={gate.gate}>
      <span class={`status ${tone}`}>
        <Icon name={icon} />
        <span class="sr">{words}</span>
      </span>
      <span class="two grow">
        {title} <b>{isOpen ? "no baseline yet" : describeActual(gate)}</b>
        <small>
          {describeLimit(gate).slice(title.length + 2)}
          {baseline && `, ${baseline} before`}
          {!isOpen && gate.note !== undefined && `. ${gate.note}`}
        </small>
      </span>
    </li>
  );
}
