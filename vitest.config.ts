import { defineConfig } from 'vitest/config';

/**
 * Two sets of tests. `default` needs only what `npm start` needs; `full` needs programs that a user's machine should
 * not have to install. `npm test` and `npm run test:full` choose by `--project`.
 */
export default defineConfig({
  test: {
    globalSetup: ['test/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
    retry: 0,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: { name: 'default', include: ['test/**/*.test.ts'], exclude: ['test/full/**'] },
      },
      {
        extends: true,
        test: {
          name: 'full',
          include: ['test/full/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
