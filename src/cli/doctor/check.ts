/** One thing that `bridle doctor` looks at. Codes are stable: docs/operations.md lists them. */
export interface Check {
  readonly code: string;
  /** Without it the daemon cannot run; otherwise something is weaker or missing. */
  readonly required: boolean;
  /** What it means when this is not as it should be. */
  readonly meaning: string;
  /** @throws nothing: what cannot be found out is a finding that is not ok */
  look(): Promise<Finding>;
}

export interface Finding {
  readonly ok: boolean;
  /** What was found, in a few words. */
  readonly found: string;
  /** The command that corrects it, when one does. */
  readonly fix?: string;
}

export interface CheckResult {
  readonly code: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly found: string;
  readonly meaning: string | null;
  readonly fix: string | null;
}

/** All checks, side by side; their results in the order given. */
export async function runChecks(checks: readonly Check[]): Promise<CheckResult[]> {
  return await Promise.all(
    checks.map(async ({ code, required, meaning, look }) => {
      const finding = await look();
      if (finding.ok) return { code, status: 'ok' as const, found: finding.found, meaning: null, fix: null };
      const status = required ? ('failed' as const) : ('warning' as const);
      return { code, status, found: finding.found, meaning, fix: finding.fix ?? null };
    }),
  );
}
