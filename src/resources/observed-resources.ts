import { resourceLabels, sharesAnnotation } from "../contract/resource-labels.ts";
import { workerContainer } from "../contract/worker.ts";
import {
  booleanField,
  integerField,
  repeatedField,
  messageReader,
  microTimeField,
  namedMessageField,
  messageField,
  stringField,
  mapField,
  timeField,
} from "../kubernetes/protobuf.ts";
import {
  type KubernetesJob,
  type KubernetesEvent,
  type KubernetesObject,
  type ObjectMeta,
  type Pod,
  resources,
  resourceType,
  type Stored,
} from "../kubernetes/resources.ts";

type OwnerReference = Omit<
  NonNullable<ObjectMeta["ownerReferences"]>[number],
  "blockOwnerDeletion"
>;
type WorkerJobSpec = NonNullable<KubernetesJob["spec"]>;
type WorkerJobStatus = NonNullable<KubernetesJob["status"]>;
type PodSpec = NonNullable<Pod["spec"]>;
type PodStatus = NonNullable<Pod["status"]>;
type ContainerState = NonNullable<NonNullable<PodStatus["containerStatuses"]>[number]["state"]>;
type Terminated = Omit<NonNullable<ContainerState["terminated"]>, "containerID" | "signal">;
type InvolvedObject = KubernetesEvent["involvedObject"];
type Condition = Pick<
  NonNullable<PodStatus["conditions"]>[number],
  "type" | "status" | "reason" | "message" | "lastTransitionTime"
>;
interface Container {
  name: string;
  state?: Pick<ContainerState, "waiting" | "running"> & { terminated?: Terminated };
}

export interface ObservedWorkerJob {
  metadata?: ObjectMeta;
  spec?: Pick<WorkerJobSpec, "completions" | "suspend" | "ttlSecondsAfterFinished">;
  status?: Pick<WorkerJobStatus, "startTime"> & { conditions?: Condition[] };
}

export interface ObservedPod {
  metadata?: ObjectMeta;
  spec?: Pick<PodSpec, "nodeName" | "serviceAccountName">;
  status?: Pick<PodStatus, "phase" | "reason" | "message" | "startTime"> & {
    conditions?: Condition[];
    containerStatuses?: Container[];
  };
}

export interface ObservedEvent extends Pick<
  KubernetesEvent,
  "message" | "lastTimestamp" | "eventTime"
> {
  metadata?: ObjectMeta;
  involvedObject: Pick<InvolvedObject, "name" | "uid">;
}

const ownerReference = messageReader<OwnerReference>({
  kind: [1, stringField],
  name: [3, stringField],
  uid: [4, stringField],
  apiVersion: [5, stringField],
  controller: [6, booleanField],
});

const metadata = messageReader<
  Pick<
    Stored<KubernetesObject>["metadata"],
    | "name"
    | "uid"
    | "resourceVersion"
    | "creationTimestamp"
    | "deletionTimestamp"
    | "labels"
    | "annotations"
    | "ownerReferences"
  >
>({
  name: [1, stringField],
  uid: [5, stringField],
  resourceVersion: [6, stringField],
  creationTimestamp: [8, timeField],
  deletionTimestamp: [9, timeField],
  labels: [
    11,
    mapField([resourceLabels.jobId, resourceLabels.step, resourceLabels.completionIndex]),
  ],
  annotations: [12, mapField([sharesAnnotation])],
  ownerReferences: [13, repeatedField(messageField(ownerReference))],
});

const condition = messageReader<Condition>({
  type: [1, stringField],
  status: [2, stringField],
  lastTransitionTime: [4, timeField],
  reason: [5, stringField],
  message: [6, stringField],
});

/** Types of the conditions that say how a Job ended. */
export const workerJobFinishedConditions: readonly string[] = ["Complete", "Failed"];

const workerJob = messageReader<Stored<ObservedWorkerJob>>({
  metadata: [1, messageField(metadata)],
  spec: [
    2,
    messageField(
      messageReader<NonNullable<ObservedWorkerJob["spec"]>>({
        completions: [2, integerField],
        ttlSecondsAfterFinished: [8, integerField],
        suspend: [10, booleanField],
      }),
    ),
  ],
  status: [
    3,
    messageField(
      messageReader<NonNullable<ObservedWorkerJob["status"]>>({
        conditions: [1, repeatedField(namedMessageField(workerJobFinishedConditions, condition))],
        startTime: [2, timeField],
      }),
    ),
  ],
});

const waiting = messageReader<NonNullable<ContainerState["waiting"]>>({
  reason: [1, stringField],
  message: [2, stringField],
});
const running = messageReader<NonNullable<ContainerState["running"]>>({
  startedAt: [1, timeField],
});
const terminated = messageReader<Terminated>({
  exitCode: [1, integerField],
  reason: [3, stringField],
  message: [4, stringField],
  startedAt: [5, timeField],
  finishedAt: [6, timeField],
});

const container = messageReader<Container>({
  name: [1, stringField],
  state: [
    2,
    messageField(
      messageReader<NonNullable<Container["state"]>>({
        waiting: [1, messageField(waiting)],
        running: [2, messageField(running)],
        terminated: [3, messageField(terminated)],
      }),
    ),
  ],
});

const pod = messageReader<Stored<ObservedPod>>({
  metadata: [1, messageField(metadata)],
  spec: [
    2,
    messageField(
      messageReader<NonNullable<ObservedPod["spec"]>>({
        serviceAccountName: [8, stringField],
        nodeName: [10, stringField],
      }),
    ),
  ],
  status: [
    3,
    messageField(
      messageReader<NonNullable<ObservedPod["status"]>>({
        phase: [1, stringField],
        conditions: [
          2,
          repeatedField(namedMessageField(["PodScheduled", "DisruptionTarget"], condition)),
        ],
        message: [3, stringField],
        reason: [4, stringField],
        startTime: [7, timeField],
        containerStatuses: [8, repeatedField(namedMessageField([workerContainer], container))],
      }),
    ),
  ],
});

const event = messageReader<Stored<ObservedEvent>>({
  metadata: [1, messageField(metadata)],
  involvedObject: [
    2,
    messageField(
      messageReader<ObservedEvent["involvedObject"]>({
        name: [3, stringField],
        uid: [4, stringField],
      }),
    ),
  ],
  message: [4, stringField],
  lastTimestamp: [7, timeField],
  eventTime: [10, microTimeField],
});

/**
 * Resources of which much is heard and little is read. Their lists and watches come as protobuf, which costs the API server and the
 * reader a fraction of JSON, and hold the fields named here alone. Numbers of fields are those of Kubernetes' published schema,
 * `generated.proto` of k8s.io/api and k8s.io/apimachinery, which never change.
 */
export const observedResources = {
  jobs: resourceType<ObservedWorkerJob>({ ...resources.jobs, protobuf: workerJob }),
  pods: resourceType<ObservedPod>({ ...resources.pods, protobuf: pod }),
  events: resourceType<ObservedEvent>({ ...resources.events, protobuf: event }),
};
