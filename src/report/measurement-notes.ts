import type { Job } from "../contract/jobs/job.ts";
import type { Section } from "./compose-sections.ts";
import { inlineCode } from "./markdown.ts";

type Telemetry = Job["telemetry"];

/** What the figures of a job are compared with, and how they were measured. */
export function measurementNotes({ telemetry, baseline }: Job): Section[] {
  const { device, accuracy, stageSeconds } = telemetry;
  const notes = [
    baseline && `Compared with ${inlineCode(`${baseline.branch} at ${baseline.sha.slice(0, 7)}`)}.`,
    device && deviceNote(device),
    accuracy && samplesNote(accuracy),
    stageSeconds && stagesNote(stageSeconds),
  ].flatMap((note) => note ?? []);
  return notes.length === 0 ? [] : [{ head: notes.join(" "), rows: [] }];
}

function deviceNote(device: NonNullable<Telemetry["device"]>): string {
  const { name, threads, executionProvider, runtime } = device;
  const software = inlineCode(`${executionProvider}, ${runtime}`);
  return `Measured on ${inlineCode(name)}, ${threads} threads, ${software}.`;
}

function samplesNote({ samples, data }: NonNullable<Telemetry["accuracy"]>): string {
  const origin = data === "generated" ? "generated samples" : "samples of the caller";
  return `Accuracy on ${samples} ${origin}.`;
}

function stagesNote(stageSeconds: NonNullable<Telemetry["stageSeconds"]>): string {
  const stages = Object.entries(stageSeconds).map(([stage, seconds = 0]) => {
    return `${stage} ${seconds.toFixed(1)}`;
  });
  return `Seconds: ${stages.join(", ")}.`;
}
