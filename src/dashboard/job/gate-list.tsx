import { describeGate } from "../../report/figures.ts";
import type { Job } from "../../contract/jobs/job.ts";
import { Icon } from "../shared/icon.tsx";

type GateResult = Job["gates"][number];

export function GateList({ gates }: Pick<Job, "gates">) {
  if (gates.length === 0) return undefined;
  const passed = gates.filter((gate) => gate.passed).length;
  return (
    <section class="card">
      <header>
        <h2>Gates</h2>
        <span class="dim">
          {passed} of {gates.length} passed
        </span>
      </header>
      <ul class="list">
        {gates.map((gate) => (
          <GateRow key={gate.gate} gate={gate} />
        ))}
      </ul>
    </section>
  );
}

const looks = {
  passed: { tone: "calm", icon: "check" },
  warn: { tone: "warn", icon: "warn" },
  fail: { tone: "bad", icon: "bad" },
} as const;

function GateRow({ gate }: { readonly gate: GateResult }) {
  const { tone, icon } = looks[gate.passed ? "passed" : gate.level];
  return (
    <li>
      <span class={`status ${tone}`}>
        <Icon name={icon} />
        <span class="sr">{gate.passed ? "passed" : `did not pass: ${gate.level}`}</span>
      </span>
      <span class="mono">{describeGate(gate)}</span>
    </li>
  );
}
