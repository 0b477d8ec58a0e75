import { z } from "zod";
import type { Route } from "./route.ts";
import {
  self,
  session,
  sessionUpdate,
  signInMethodList,
  signInRequest,
} from "../people/session.ts";

export const sessionRoutes = {
  getSelf: {
    method: "GET",
    path: "/self",
    summary: "Who sends the request, and what they may do",
    action: "readSelf",
    replies: { 200: { json: self } },
    errors: [],
  },
  getSignInMethods: {
    method: "GET",
    path: "/sessions/methods",
    summary: "How people can sign in besides a one-time link",
    action: "signIn",
    open: true,
    replies: { 200: { json: signInMethodList } },
    errors: [],
  },
  signIn: {
    method: "POST",
    path: "/sessions",
    summary: "Sign in with a one-time link; the answer sets the session's cookie",
    action: "signIn",
    open: true,
    body: signInRequest,
    bodyBytes: 1024,
    replies: { 201: { json: session, headers: ["set-cookie"] } },
    errors: ["unsupported_media_type", "payload_too_large", "sign_in_refused"],
  },
  listSessions: {
    method: "GET",
    path: "/sessions",
    summary: "Where the person who asks is signed in; nowhere for an access token",
    action: "manageOwnSessions",
    replies: {
      200: { json: z.object({ sessions: z.array(session) }).meta({ id: "SessionList" }) },
    },
    errors: [],
  },
  switchProject: {
    method: "PUT",
    path: "/sessions/self",
    summary: "Choose the project of the session",
    action: "manageOwnSessions",
    body: sessionUpdate,
    bodyBytes: 1024,
    audited: true,
    replies: { 200: { json: session } },
    errors: ["unsupported_media_type", "payload_too_large", "not_found"],
  },
  signOut: {
    method: "DELETE",
    path: "/sessions/self",
    summary: "Sign out; without effect for an access token",
    action: "manageOwnSessions",
    audited: true,
    replies: { 204: { empty: true, headers: ["set-cookie"] } },
    errors: [],
  },
  signOutEverywhere: {
    method: "DELETE",
    path: "/sessions",
    summary: "Sign out everywhere; without effect for an access token",
    action: "manageOwnSessions",
    audited: true,
    replies: { 204: { empty: true, headers: ["set-cookie"] } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
