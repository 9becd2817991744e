/** The chosen way of a run. Its key is the five fields, the endpoint normalised. */
export interface Route {
  readonly harness: string;
  readonly provider: string | null;
  readonly endpoint: string | null;
  readonly serverInstance: string | null;
  readonly model: string | null;
}

/** What `<id>.route.json` and `runs/<run>/route.json` hold: the route and why it was taken. */
export interface RouteDecision extends Route {
  readonly reason: 'request' | 'agent' | 'first-healthy';
  readonly candidates: readonly RouteCandidate[];
}

export interface RouteCandidate {
  readonly harness: string;
  readonly eligible: boolean;
  /** Why it was not taken; null for the chosen one. */
  readonly filter: string | null;
}
