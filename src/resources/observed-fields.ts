import {
  resourceLabels,
  sharesAnnotation,
  syncRequestAnnotation,
} from "../contract/custom-resources/resource-labels.ts";
import {
  booleanField,
  integerField,
  mapField,
  messageField,
  repeatedField,
  stringField,
  timeField,
} from "../kubernetes/protobuf/field-readers.ts";
import { messageReader } from "../kubernetes/protobuf/message-reader.ts";
import type { KubernetesObject, ObjectMeta, Pod, Stored } from "../kubernetes/resources.ts";

type OwnerReference = Omit<
  NonNullable<ObjectMeta["ownerReferences"]>[number],
  "blockOwnerDeletion"
>;
type PodStatus = NonNullable<Pod["status"]>;
type ContainerState = NonNullable<NonNullable<PodStatus["containerStatuses"]>[number]["state"]>;
type Terminated = Omit<NonNullable<ContainerState["terminated"]>, "containerID" | "signal">;

export type ObservedCondition = Pick<
  NonNullable<PodStatus["conditions"]>[number],
  "type" | "status" | "reason" | "message" | "lastTransitionTime"
>;

export interface ObservedContainer {
  name: string;
  state?: Pick<ContainerState, "waiting" | "running"> & { terminated?: Terminated };
}

const ownerReference = messageReader<OwnerReference>({
  kind: [1, stringField],
  name: [3, stringField],
  uid: [4, stringField],
  apiVersion: [5, stringField],
  controller: [6, booleanField],
});

/** The metadata of every observed object. */
export const observedMetadata = messageReader<
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
    mapField([resourceLabels.jobId, resourceLabels.step, resourceLabels.completionIndex]),
  ],
  annotations: [12, mapField([sharesAnnotation, syncRequestAnnotation])],
  ownerReferences: [13, repeatedField(messageField(ownerReference))],
});

/** A condition of a Job or a pod. */
export const observedCondition = messageReader<ObservedCondition>({
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
export const observedContainer = messageReader<ObservedContainer>({
  name: [1, stringField],
  state: [2, messageField(containerState)],
});
