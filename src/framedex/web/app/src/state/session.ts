/** The user: whose account this is, and what they may do. */

import { computed, signal } from "@preact/signals";
import { leave, readAddress } from "#host";
import { ApiError, get, onUnauthorized, post } from "../api/http";
import type { Profile } from "../api/types";
import { navigate, route } from "../router";

export const profile = signal<Profile | null>(null);
/** Whether it is known who the user is. */
export const isKnown = signal(false);
export const authIsOff = computed(() => profile.value?.auth === "disabled");
export const isAdmin = computed(() => profile.value?.workspace_role === "admin");
/** Whether the user may manage users, or at least see them. */
export const manages = computed(() => !authIsOff.value && (profile.value?.roles ?? []).includes("manage-users"));
export const seesUsers = computed(() => manages.value || (profile.value?.roles ?? []).includes("view-users"));
export const mayCreate = computed(
  () => profile.value !== null && profile.value.workspace_role !== "viewer" && !profile.value.read_only,
);

/** Ask the server who the user is; without one, go to the page for logging in. */
export async function loadProfile(): Promise<void> {
  onUnauthorized.current = logInFirst;
  try {
    profile.value = await get<Profile>("/me");
    if (profile.value.must_change_password) navigate("/login", { replace: true });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
  } finally {
    isKnown.value = true;
  }
}

function logInFirst(): void {
  profile.value = null;
  if (route.value.page === "login") return;
  const { path, search } = readAddress();
  const next = path + search;
  navigate(`/login${next === "/" ? "" : `?next=${encodeURIComponent(next)}`}`, { replace: true });
}

/** End the session. */
export async function logOut(): Promise<void> {
  await post("/logout");
  profile.value = null;
  navigate("/login");
}

/** End the session here and at the identity provider. */
export async function logOutAtProvider(): Promise<void> {
  const { logout_url } = await post<{ logout_url: string | null }>("/oidc/logout");
  profile.value = null;
  if (logout_url) leave(logout_url);
  else navigate("/login");
}
