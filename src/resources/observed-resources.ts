import {
  resourceLabels,
  sharesAnnotation,
  syncRequestAnnotation,
} from "../contract/custom-resources/resource-labels.ts";
import { workerContainer } from "../contract/worker-protocol/messages.ts";
import {
  booleanField,
  integerField,
  mapField,
  messageField,
  microTimeField,
  namedMessageField,
  repeatedField,
  stringField,
  timeField,
} from "../kubernetes/protobuf/field-readers.ts";
import { messageReader } from "../kubernetes/protobuf/message-reader.ts";
import {
  type KubernetesEvent,
  type KubernetesJob,
  type KubernetesObject,
  type ObjectMeta,
  type Pod,
  resources,
  resourceType,
  type Stored,
} from "../kubernetes/resources.ts";

type WorkerJobSpec = NonNullable<KubernetesJob["spec"]>;
type WorkerJobStatus = NonNullable<KubernetesJob["status"]>;
type PodSpec = NonNullable<Pod["spec"]>;
type PodStatus = NonNullable<Pod["status"]>;
type InvolvedObject = KubernetesEvent["involvedObject"];
type OwnerReference = Omit<
  NonNullable<ObjectMeta["ownerReferences"]>[number],
  "blockOwnerDeletion"
>;
type ContainerState = NonNullable<NonNullable<PodStatus["containerStatuses"]>[number]["state"]>;
type Terminated = Omit<NonNullable<ContainerState["terminated"]>, "containerID" | "signal">;

type ObservedCondition = Pick<
  NonNullable<PodStatus["conditions"]>[number],
  "type" | "status" | "reason" | "message" | "lastTransitionTime"
>;

interface ObservedContainer {
  name: string;
  state?: Pick<ContainerState, "waiting" | "running"> & { terminated?: Terminated };
}

export interface ObservedWorkerJob {
  metadata?: ObjectMeta;
  spec?: Pick<WorkerJobSpec, "activeDeadlineSeconds" | "completions" | "suspend"> & {
    template?: { spec?: Pick<PodSpec, "serviceAccountName"> };
  };
  status?: Pick<WorkerJobStatus, "startTime"> & { conditions?: ObservedCondition[] };
}

export interface ObservedPod {
  metadata?: ObjectMeta;
  spec?: Pick<PodSpec, "nodeName" | "serviceAccountName">;
  status?: Pick<PodStatus, "phase" | "reason" | "message" | "startTime"> & {
    conditions?: ObservedCondition[];
    containerStatuses?: ObservedContainer[];
  };
}

export interface ObservedEvent extends Pick<
  KubernetesEvent,
  "message" | "lastTimestamp" | "eventTime"
> {
  metadata?: ObjectMeta;
  involvedObject: Pick<InvolvedObject, "name" | "uid">;
}

/** Types of the conditions with which a Job ends. */
export const workerJobFinishedConditions: readonly string[] = ["Complete", "Failed"];

const ownerReference = messageReader<OwnerReference>({
  kind: [1, stringField],
  name: [3, stringField],
  uid: [4, stringField],
  apiVersion: [5, stringField],
  controller: [6, booleanField],
});

/** The metadata of every observed object. */
const observedMetadata = messageReader<
  Pick<
    Stored<KubernetesObject>["metadata"],
    | "name"
    | "namespace"
    | "uid"
    | "resourceVersion"
    | "creationTimestamp"
    | "deletionTimestamp"
    | "deletionGracePeriodSeconds"
    | "labels"
    | "annotations"
    | "ownerReferences"
  >
>({
  name: [1, stringField],
  namespace: [3, stringField],
  uid: [5, stringField],
  resourceVersion: [6, stringField],
  creationTimestamp: [8, timeField],
  deletionTimestamp: [9, timeField],
  deletionGracePeriodSeconds: [10, integerField],
  labels: [
    11,
    mapField([
      resourceLabels.jobId,
      resourceLabels.step,
      resourceLabels.queue,
      resourceLabels.completionIndex,
    ]),
  ],
  annotations: [12, mapField([sharesAnnotation, syncRequestAnnotation])],
  ownerReferences: [13, repeatedField(messageField(ownerReference))],
});

/** A condition of a Job or a pod. */
const observedCondition = messageReader<ObservedCondition>({
  type: [1, stringField],
  status: [2, stringField],
  lastTransitionTime: [4, timeField],
  reason: [5, stringField],
  message: [6, stringField],
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
const containerState = messageReader<NonNullable<ObservedContainer["state"]>>({
  waiting: [1, messageField(waiting)],
  running: [2, messageField(running)],
  terminated: [3, messageField(terminated)],
});

/** The status of a container. */
const observedContainer = messageReader<ObservedContainer>({
  name: [1, stringField],
  state: [2, messageField(containerState)],
});

const templatePodSpec = messageReader<Pick<PodSpec, "serviceAccountName">>({
  serviceAccountName: [8, stringField],
});
const podTemplate = messageReader<NonNullable<NonNullable<ObservedWorkerJob["spec"]>["template"]>>({
  spec: [2, messageField(templatePodSpec)],
});
const workerJobSpec = messageReader<NonNullable<ObservedWorkerJob["spec"]>>({
  completions: [2, integerField],
  activeDeadlineSeconds: [3, integerField],
  template: [6, messageField(podTemplate)],
  suspend: [10, booleanField],
});
const workerJobStatus = messageReader<NonNullable<ObservedWorkerJob["status"]>>({
  conditions: [1, repeatedField(namedMessageField(workerJobFinishedConditions, observedCondition))],
  startTime: [2, timeField],
});
const workerJob = messageReader<Stored<ObservedWorkerJob>>({
  metadata: [1, messageField(observedMetadata)],
  spec: [2, messageField(workerJobSpec)],
  status: [3, messageField(workerJobStatus)],
});

const podSpec = messageReader<NonNullable<ObservedPod["spec"]>>({
  serviceAccountName: [8, stringField],
  nodeName: [10, stringField],
});
const podConditions = ["PodScheduled", "DisruptionTarget"];
const podStatus = messageReader<NonNullable<ObservedPod["status"]>>({
  phase: [1, stringField],
  conditions: [2, repeatedField(namedMessageField(podConditions, observedCondition))],
  message: [3, stringField],
  reason: [4, stringField],
  startTime: [7, timeField],
  containerStatuses: [8, repeatedField(namedMessageField([workerContainer], observedContainer))],
});
const pod = messageReader<Stored<ObservedPod>>({
  metadata: [1, messageField(observedMetadata)],
  spec: [2, messageField(podSpec)],
  status: [3, messageField(podStatus)],
});

const involvedObject = messageReader<ObservedEvent["involvedObject"]>({
  name: [3, stringField],
  uid: [4, stringField],
});
const event = messageReader<Stored<ObservedEvent>>({
  metadata: [1, messageField(observedMetadata)],
  involvedObject: [2, messageField(involvedObject)],
  message: [4, stringField],
  lastTimestamp: [7, timeField],
  eventTime: [10, microTimeField],
});

/**
 * Resources with few fields that are used. Lists and watches of them come as protobuf, which costs
 * the API server and the reader a fraction of JSON, and only these fields are decoded. Field
 * numbers are those of `generated.proto` of k8s.io/api and k8s.io/apimachinery, which never change.
 */
export const observedResources = {
  jobs: resourceType<ObservedWorkerJob>({ ...resources.jobs, protobuf: workerJob }),
  pods: resourceType<ObservedPod>({ ...resources.pods, protobuf: pod }),
  events: resourceType<ObservedEvent>({ ...resources.events, protobuf: event }),
};
