// What the process rule asks of a syntax tree.
import ts from 'typescript';

/**
 * One file with the scopes of its names, and nothing else: no library, no other module.
 * @param {string} fileName
 * @param {string} text
 */
export function programOf(fileName, text) {
  const source = ts.createSourceFile(fileName, text, ts.ScriptTarget.ESNext, true);
  const host = {
    getSourceFile: (/** @type {string} */ name) => (name === fileName ? source : undefined),
    getDefaultLibFileName: () => 'lib.d.ts',
    writeFile: () => undefined,
    getCurrentDirectory: () => '/',
    getCanonicalFileName: (/** @type {string} */ name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    fileExists: (/** @type {string} */ name) => name === fileName,
    readFile: () => undefined,
  };
  const options = { noLib: true, noResolve: true, allowJs: true, types: [], target: ts.ScriptTarget.ESNext };
  const checker = ts.createProgram([fileName], options, host).getTypeChecker();
  /**
   * The declaration that an identifier means, or its text when the file has none.
   * @param {ts.Identifier} node
   * @returns {ts.Symbol | string}
   */
  const keyOf = (node) => {
    const symbol = symbolOf(checker, node);
    const declarations = symbol?.declarations ?? [];
    return symbol && declarations.some((declaration) => !isAmbient(declaration)) ? symbol : node.text;
  };
  return { source, keyOf };
}

/** @param {ts.TypeChecker} checker @param {ts.Identifier} node */
function symbolOf(checker, node) {
  if (ts.isShorthandPropertyAssignment(node.parent)) return checker.getShorthandAssignmentValueSymbol(node.parent);
  if (ts.isExportSpecifier(node.parent)) return checker.getExportSpecifierLocalTargetSymbol(node.parent);
  return checker.getSymbolAtLocation(node);
}

/** @param {ts.Declaration} declaration */
function isAmbient(declaration) {
  return (ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Ambient) !== 0;
}

/** Whether a name that is declared here can be imported. @param {ts.Node} node */
export function isExported(node) {
  const isDeclaration =
    ts.isVariableDeclaration(node) || ts.isBindingElement(node) || ts.isImportEqualsDeclaration(node);
  return isDeclaration && (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Export) !== 0;
}

/**
 * What asks an object for a member, in an expression or in a type.
 * @param {ts.Node} node
 * @returns {{ object: ts.Node, name: string | undefined } | undefined} name undefined: computed
 */
export function memberOf(node) {
  if (ts.isQualifiedName(node)) return { object: node.left, name: node.right.text };
  if (ts.isPropertyAccessExpression(node)) return { object: node.expression, name: node.name.text };
  if (ts.isElementAccessExpression(node)) {
    return { object: node.expression, name: constantText(node.argumentExpression) };
  }
  return undefined;
}

/** An expression without what changes nothing of its value. @param {ts.Node} node @returns {ts.Node} */
export function plain(node) {
  if (isWrapper(node)) return plain(node.expression);
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.CommaToken) return plain(node.right);
  return node;
}

/** @param {ts.Node} node */
function isWrapper(node) {
  return (
    ts.isParenthesizedExpression(node) ||
    ts.isNonNullExpression(node) ||
    ts.isAsExpression(node) ||
    ts.isSatisfiesExpression(node) ||
    ts.isTypeAssertionExpression(node) ||
    ts.isAwaitExpression(node)
  );
}

/** The text of a string that is written out, also in pieces. @param {ts.Node} node @returns {string | undefined} */
export function constantText(node) {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isExpression(node)) return undefined;
  const inner = plain(node);
  if (inner !== node) return constantText(inner);
  if (ts.isNumericLiteral(node)) return node.text;
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    return joined([constantText(node.left), constantText(node.right)]);
  }
  if (ts.isTemplateExpression(node)) {
    const rest = node.templateSpans.flatMap((span) => [constantText(span.expression), span.literal.text]);
    return joined([node.head.text, ...rest]);
  }
  return undefined;
}

/** @param {(string | undefined)[]} parts */
function joined(parts) {
  return parts.includes(undefined) ? undefined : parts.join('');
}

/**
 * What a declaration or an assignment binds: a name or a pattern, and the value.
 * @param {ts.Node} node
 * @returns {{ target: ts.Node, value: ts.Expression }[]}
 */
export function boundNames(node) {
  if ((ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node)) && node.initializer) {
    return [{ target: node.name, value: node.initializer }];
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
    return [{ target: plain(node.left), value: node.right }];
  }
  return [];
}

/**
 * The members that a pattern takes from an object.
 * @param {ts.Node} pattern
 * @returns {{ node: ts.Node, name: string | undefined, local?: ts.Node }[]} name undefined: computed, or the rest
 */
export function writtenNames(pattern) {
  if (ts.isObjectBindingPattern(pattern)) {
    return pattern.elements.map((node) => {
      const key = node.propertyName ?? node.name;
      return { node, name: node.dotDotDotToken ? undefined : nameOf(key), local: node.name };
    });
  }
  if (!ts.isObjectLiteralExpression(pattern)) return [];
  return pattern.properties.map((node) => {
    if (ts.isShorthandPropertyAssignment(node)) return { node, name: node.name.text, local: node.name };
    if (!ts.isPropertyAssignment(node)) return { node, name: undefined };
    return { node, name: nameOf(node.name), local: plain(node.initializer) };
  });
}

/** @param {ts.Node} key */
function nameOf(key) {
  if (ts.isIdentifier(key)) return key.text;
  return constantText(ts.isComputedPropertyName(key) ? key.expression : key);
}

/**
 * Whether an expression is handed on whole: neither asked for a member, nor bound to a name, nor only a name itself.
 * @param {ts.Expression} node
 * @returns {boolean}
 */
export function isValueUse(node) {
  const { parent } = node;
  if (isWrapper(parent)) return isValueUse(/** @type {ts.Expression} */ (parent));
  if (ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent)) {
    return ts.isElementAccessExpression(parent) && parent.argumentExpression === node;
  }
  if (ts.isShorthandPropertyAssignment(parent)) return !isAssigned(parent.parent);
  if (ts.isVariableDeclaration(parent) || ts.isParameter(parent) || ts.isBindingElement(parent)) return false;
  if (ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken) {
    const left = plain(parent.left);
    return parent.right === node && !ts.isIdentifier(left) && !ts.isObjectLiteralExpression(left);
  }
  if (ts.isTypeOfExpression(parent) || ts.isExpressionStatement(parent)) return false;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node && !isAssigned(parent.parent);
  if (ts.isExportSpecifier(parent)) return true;
  return ts.isExpression(parent) || ts.isStatement(parent) || ts.isSpreadAssignment(parent) || isInitializer(node);
}

/** @param {ts.Node} literal */
function isAssigned(literal) {
  return ts.isBinaryExpression(literal.parent) && literal.parent.left === literal;
}

/** @param {ts.Node} node */
function isInitializer(node) {
  return ts.isPropertyDeclaration(node.parent) && node.parent.initializer === node;
}
