/** Requests to the service: JSON in and out, its errors as {@link ApiError}, and whether it answers. */

import { signal } from "@preact/signals";
import { BASE, request } from "#host";

/** The largest body of a request that browsers finish after the page was closed. */
const MOST_KEPT_BYTES = 16_000;

/** Whether the service answered the last request. */
export const isOnline = signal(true);

/** How often the service did not answer. */
let failures = 0;

/** Return a function to call with an answer to what is sent now: the service is there, unless it failed since. */
export function beforeSending(): () => void {
  const before = failures;
  return () => {
    if (before === failures) isOnline.value = true;
  };
}

/** Called when the service says that nobody is logged in. */
export const onUnauthorized: { current: () => void } = { current: () => {} };

/** Called when the service refuses something, which may be because what the user may do has changed. */
export const onRefused: { current: (error: ApiError) => void } = { current: () => {} };

/** An error that the service answered with, or the absence of an answer (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly code = "",
    /** The kind of the reason why an image cannot be decoded. */
    readonly fault = "",
  ) {
    super(detail);
  }
}

export type QueryValue = string | number | boolean | null | undefined | readonly string[];
export interface RequestOptions {
  query?: Record<string, QueryValue>;
  json?: unknown;
  form?: FormData;
  signal?: AbortSignal | undefined;
}

/** Return the address of a path below `/api/v1`, with its query. */
export function address(path: string, query: Record<string, QueryValue> = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) pairs.append(name, each);
    else if (value !== undefined && value !== null && value !== "") pairs.append(name, String(value));
  }
  const text = pairs.toString();
  return `${BASE}/api/v1${path}${text ? `?${text}` : ""}`;
}

/** Send a request and return the response if its status is 2xx; throw an {@link ApiError} otherwise. */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json" };
  let body: BodyInit | undefined = options.form;
  if (options.json !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(options.json);
  }
  const url = address(path, options.query);
  const init: RequestInit = { method, headers, credentials: "same-origin", signal: options.signal ?? null };
  if (body !== undefined) init.body = body;
  // A change that was sent arrives, even if the page is closed meanwhile.
  if (method !== "GET" && typeof body === "string" && body.length < MOST_KEPT_BYTES) init.keepalive = true;
  let response: Response;
  const answered = beforeSending();
  try {
    response = await request(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    failures++;
    isOnline.value = false;
    throw new ApiError(0, "The server does not answer", "offline");
  }
  answered();
  if (response.ok) return response;
  throw await problem(response);
}

/** Send a request and return the answer's JSON; null for an answer without a body. */
export async function call<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(method, path, options);
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

export const get = <T>(path: string, query: Record<string, QueryValue> = {}, signal?: AbortSignal): Promise<T> =>
  call<T>("GET", path, { query, signal });
export const post = <T>(path: string, json: unknown = {}, query: Record<string, QueryValue> = {}): Promise<T> =>
  call<T>("POST", path, { json, query });

/** Return the error of a response whose status is not 2xx. */
export async function problem(response: Response): Promise<ApiError> {
  let detail = `The server answered ${response.status}`;
  let code = "";
  let fault = "";
  try {
    const body = (await response.json()) as { detail?: unknown; code?: unknown; fault?: unknown };
    if (typeof body.detail === "string") detail = body.detail;
    if (typeof body.code === "string") code = body.code;
    if (typeof body.fault === "string") fault = body.fault;
  } catch {
    // not JSON: a proxy answered
  }
  if (response.status === 401) onUnauthorized.current();
  const error = new ApiError(response.status, detail, code, fault);
  if (response.status === 403 || response.status === 404) onRefused.current(error);
  return error;
}
