export interface PodEndStageOptions {
  /** Of the pods that end so; all pods of Jobs if there are none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** 0 by default: success. */
  readonly exitCode?: number;
  /** Only of pods that are being deleted, as a kubelet ends them; else of pods that are not. */
  readonly onDeletion?: boolean;
  /** `Completed` or `Error` by default; for instance `OOMKilled`. */
  readonly reason?: string;
  /** What the container left as its termination message. */
  readonly message?: string;
  /** Its kubelet evicts it, as it does where the node lacks memory. */
  readonly evicted?: boolean;
  /** From running to the end; 0 by default. Up to `maxDelayMs`, evenly, where that is given. */
  readonly delayMs?: number;
  readonly maxDelayMs?: number;
  /** Chance against other ends of the same pod. By default an end that names labels always wins over one that names none. */
  readonly weight?: number;
}

/** A stage for simulated nodes: how running pods of Jobs end. */
export function podEndStage(options: PodEndStageOptions = {}): object {
  const { labels = {}, delayMs = 0, onDeletion = false, maxDelayMs = delayMs } = options;
  const { weight = Object.keys(labels).length > 0 || onDeletion ? 1 : 0 } = options;
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name: stageName({ ...options, weight }) },
    spec: {
      resourceRef: { apiGroup: "v1", kind: "Pod" },
      selector: {
        matchLabels: labels,
        matchExpressions: [
          {
            key: ".metadata.deletionTimestamp",
            operator: onDeletion ? "Exists" : "DoesNotExist",
          },
          { key: ".status.phase", operator: "In", values: ["Running"] },
          { key: ".metadata.ownerReferences.[].kind", operator: "In", values: ["Job"] },
        ],
      },
      weight,
      delay: { durationMilliseconds: delayMs, jitterDurationMilliseconds: maxDelayMs },
      next: { statusTemplate: statusTemplate(podEnd(options)) },
    },
  };
}

function stageName(options: PodEndStageOptions): string {
  const text = JSON.stringify(options).toLowerCase();
  return `pod-end-${text.replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "")}`;
}

interface PodEnd {
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly evicted: boolean;
}

function podEnd({ evicted = false, ...options }: PodEndStageOptions): PodEnd {
  const { exitCode = evicted ? 137 : 0, message = "" } = options;
  const { reason = exitCode === 0 ? "Completed" : "Error" } = options;
  return { exitCode, reason, message, evicted };
}

function statusTemplate({ evicted, ...terminated }: PodEnd): string {
  return `
phase: ${terminated.exitCode === 0 ? "Succeeded" : "Failed"}
${evicted ? evictedPod : ""}
conditions:
${evicted ? evictedCondition : ""}
- { type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ Now | Quote }} }
- { type: ContainersReady, status: "False", reason: PodCompleted, lastTransitionTime: {{ Now | Quote }} }
containerStatuses:
{{ $root := . }}
{{ range $index, $container := .spec.containers }}
{{ $before := index $root.status.containerStatuses $index }}
- name: {{ $container.name | Quote }}
  image: {{ $container.image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: ${terminated.exitCode}
      reason: ${JSON.stringify(terminated.reason)}
      message: ${JSON.stringify(terminated.message)}
      startedAt: {{ $before.state.running.startedAt | Quote }}
      finishedAt: {{ Now | Quote }}
{{ end }}
`;
}

const evictedPod = `
reason: Evicted
message: "The node was low on resource: memory."`;
const evictedCondition = `
- type: DisruptionTarget
  status: "True"
  reason: TerminationByKubelet
  lastTransitionTime: {{ Now | Quote }}`;
