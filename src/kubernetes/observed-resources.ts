import { resourceLabels, sharesAnnotation } from "../contract/custom-resources.ts";
import { workerContainer } from "../contract/worker.ts";
import { boolean, integer, many, message, microTime, named, one, text, texts, time } from "./protobuf.ts";
import {
  type Job,
  type KubernetesEvent,
  type KubernetesObject,
  type ObjectMeta,
  type Pod,
  resources,
  resourceType,
  type Stored,
} from "./resources.ts";

type Owner = Omit<NonNullable<ObjectMeta["ownerReferences"]>[number], "blockOwnerDeletion">;
type JobSpec = NonNullable<Job["spec"]>;
type JobStatus = NonNullable<Job["status"]>;
type PodSpec = NonNullable<Pod["spec"]>;
type PodStatus = NonNullable<Pod["status"]>;
type ContainerState = NonNullable<NonNullable<PodStatus["containerStatuses"]>[number]["state"]>;
type Terminated = Omit<NonNullable<ContainerState["terminated"]>, "containerID" | "signal">;
type About = KubernetesEvent["involvedObject"];
type Condition = Pick<
  NonNullable<PodStatus["conditions"]>[number],
  "type" | "status" | "reason" | "message" | "lastTransitionTime"
>;
interface Container {
  name: string;
  state?: Pick<ContainerState, "waiting" | "running"> & { terminated?: Terminated };
}

export interface ObservedJob {
  metadata?: ObjectMeta;
  spec?: Pick<JobSpec, "completions" | "suspend" | "ttlSecondsAfterFinished">;
  status?: Pick<JobStatus, "startTime"> & { conditions?: Condition[] };
}

export interface ObservedPod {
  metadata?: ObjectMeta;
  spec?: Pick<PodSpec, "nodeName" | "serviceAccountName">;
  status?: Pick<PodStatus, "phase" | "reason" | "message" | "startTime"> & {
    conditions?: Condition[];
    containerStatuses?: Container[];
  };
}

export interface ObservedEvent extends Pick<KubernetesEvent, "message" | "lastTimestamp" | "eventTime"> {
  metadata?: ObjectMeta;
  involvedObject: Pick<About, "name" | "uid">;
}

const owner = message<Owner>({
  kind: [1, text],
  name: [3, text],
  uid: [4, text],
  apiVersion: [5, text],
  controller: [6, boolean],
});

const metadata = message<
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
  name: [1, text],
  uid: [5, text],
  resourceVersion: [6, text],
  creationTimestamp: [8, time],
  deletionTimestamp: [9, time],
  labels: [11, texts([resourceLabels.jobId, resourceLabels.step, resourceLabels.completionIndex])],
  annotations: [12, texts([sharesAnnotation])],
  ownerReferences: [13, many(one(owner))],
});

const condition = message<Condition>({
  type: [1, text],
  status: [2, text],
  lastTransitionTime: [4, time],
  reason: [5, text],
  message: [6, text],
});

/** Types of the conditions that say how a Job ended. */
export const jobEndConditions: readonly string[] = ["Complete", "Failed"];

const job = message<Stored<ObservedJob>>({
  metadata: [1, one(metadata)],
  spec: [
    2,
    one(
      message<NonNullable<ObservedJob["spec"]>>({
        completions: [2, integer],
        ttlSecondsAfterFinished: [8, integer],
        suspend: [10, boolean],
      }),
    ),
  ],
  status: [
    3,
    one(
      message<NonNullable<ObservedJob["status"]>>({
        conditions: [1, many(named(jobEndConditions, condition))],
        startTime: [2, time],
      }),
    ),
  ],
});

const waiting = message<NonNullable<ContainerState["waiting"]>>({ reason: [1, text], message: [2, text] });
const running = message<NonNullable<ContainerState["running"]>>({ startedAt: [1, time] });
const terminated = message<Terminated>({
  exitCode: [1, integer],
  reason: [3, text],
  message: [4, text],
  startedAt: [5, time],
  finishedAt: [6, time],
});

const container = message<Container>({
  name: [1, text],
  state: [
    2,
    one(
      message<NonNullable<Container["state"]>>({
        waiting: [1, one(waiting)],
        running: [2, one(running)],
        terminated: [3, one(terminated)],
      }),
    ),
  ],
});

const pod = message<Stored<ObservedPod>>({
  metadata: [1, one(metadata)],
  spec: [2, one(message<NonNullable<ObservedPod["spec"]>>({ serviceAccountName: [8, text], nodeName: [10, text] }))],
  status: [
    3,
    one(
      message<NonNullable<ObservedPod["status"]>>({
        phase: [1, text],
        conditions: [2, many(named(["PodScheduled", "DisruptionTarget"], condition))],
        message: [3, text],
        reason: [4, text],
        startTime: [7, time],
        containerStatuses: [8, many(named([workerContainer], container))],
      }),
    ),
  ],
});

const event = message<Stored<ObservedEvent>>({
  metadata: [1, one(metadata)],
  involvedObject: [2, one(message<ObservedEvent["involvedObject"]>({ name: [3, text], uid: [4, text] }))],
  message: [4, text],
  lastTimestamp: [7, time],
  eventTime: [10, microTime],
});

/**
 * Resources of which much is heard and little is read. Their lists and watches come as protobuf, which costs the API server and the
 * reader a fraction of JSON, and hold the fields named here alone. Numbers of fields are those of Kubernetes' published schema,
 * `generated.proto` of k8s.io/api and k8s.io/apimachinery, which never change.
 */
export const observedResources = {
  jobs: resourceType<ObservedJob>({ ...resources.jobs, protobuf: job }),
  pods: resourceType<ObservedPod>({ ...resources.pods, protobuf: pod }),
  events: resourceType<ObservedEvent>({ ...resources.events, protobuf: event }),
};
