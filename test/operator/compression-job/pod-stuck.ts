interface PodStuckOptions {
  readonly labels: Readonly<Record<string, string>>;
  /** Of the container that waits, for instance `ErrImagePull`. */
  readonly reason: string;
  readonly message: string;
  /** As the status has it; by default now. */
  readonly startTime?: string;
}

/** Stages for simulated nodes: the container of such pods never starts. */
export function podStuck({ labels, reason, message, startTime }: PodStuckOptions): object[] {
  const name = `pod-stuck-${reason}`.toLowerCase();
  const waiting = { key: ".status.containerStatuses.[].state.waiting.reason" };
  const statusTemplate = `
startTime: ${startTime === undefined ? "{{ Now | Quote }}" : JSON.stringify(startTime)}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  restartCount: 0
  state: { waiting: { reason: ${JSON.stringify(reason)}, message: ${JSON.stringify(message)} } }
{{ end }}
`;
  return [
    stage(
      name,
      { labels, waiting: { ...waiting, operator: "DoesNotExist" } },
      { next: { statusTemplate } },
    ),
    // Wins over the stage that would start the pod.
    stage(
      `${name}-stays`,
      { labels, waiting: { ...waiting, operator: "Exists" } },
      { next: {}, delay: { durationMilliseconds: 3_600_000 } },
    ),
  ];
}

interface Selection {
  readonly labels: Readonly<Record<string, string>>;
  readonly waiting: { readonly key: string; readonly operator: string };
}

function stage(name: string, { labels, waiting }: Selection, then: object): object {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: "v1", kind: "Pod" },
      selector: {
        matchLabels: labels,
        matchExpressions: [
          { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" },
          { key: ".status.phase", operator: "In", values: ["Pending"] },
          waiting,
        ],
      },
      weight: 1,
      ...then,
    },
  };
}
