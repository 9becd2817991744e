import { describe, expect, it } from 'vitest';
import { createScrubber } from '../../src/harnesses/secrets.js';

describe('the scrubber', () => {
  const scrubber = createScrubber({
    OPENAI_API_KEY: 'first-secret-value',
    MY_TOKEN: 'first-secret-value-and-more',
    HOME: '/home/somebody',
    SHORT_KEY: 'abc',
  });

  it('HA-13 masks the values of secret variables, the longest first, and nothing else', () => {
    expect(scrubber.known('a first-secret-value-and-more b first-secret-value c /home/somebody abc')).toBe(
      'a [secret] b [secret] c /home/somebody abc',
    );
  });

  it.each([
    ['sk-proj-abcdefgh12345678', 'an OpenAI key'],
    ['AIzaSyA1234567890abcdefghijk', 'a Google key'],
    ['ghp_abcdefghijklmnopqrstuvwx', 'a GitHub token'],
    ['Bearer abcdef.ghijkl', 'a bearer token'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig_nature', 'a web token'],
  ])('HA-13 masks %s in an error message: it looks like %s', (text) => {
    expect(scrubber.all(`401: ${text} is wrong`)).toBe('401: [secret] is wrong');
  });
});
