"""The server itself: which message of the editor does what, and when a change is checked."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from stoker.doctor.lsp import messages
from stoker.doctor.lsp.documents import CheckedText, OpenDocuments
from stoker.version import __version__

# A change is checked once no further key is pressed for this time.
_PAUSE_S = 0.25
# The tree of a sum of a thousand terms is a thousand levels deep, and here a thread walks it.
_STACK_BYTES = 64 << 20
_ACTIONS = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, messages.FIX_ALL])


class CheckServer(LanguageServer):
    """Publishes the findings of the open documents, and answers requests about them."""

    def __init__(self) -> None:
        super().__init__("stoker", __version__)
        self._documents = OpenDocuments()
        # The number of requests for a check. Only the latest request is served.
        self._latest = 0
        self._told: set[str] = set()
        default = threading.stack_size(_STACK_BYTES)
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="stoker-check")
        # The thread starts with its first task, so the stack size must stay set until then.
        self._checker.submit(int).result()
        threading.stack_size(default)

    async def check_after(self, pause_s: float) -> None:
        """Wait, then check the open documents, unless a newer request has come in."""
        self._latest += 1
        mine = self._latest
        await asyncio.sleep(pause_s)
        if mine != self._latest:
            return
        documents = self._open_files()
        texts = {path: document.source for path, document in documents.items()}
        running = asyncio.get_running_loop()
        checked = await running.run_in_executor(self._checker, self._documents.check, texts)
        for path, result in checked.items():
            # A document that has changed meanwhile is checked again: these lines no longer fit it.
            if documents[path].source == result.text and result.parses:
                self._publish(documents[path], result)
        self._tell_config_errors()

    def _open_files(self) -> dict[str, TextDocument]:
        """Return the open documents that are Python files, by path. Documents not saved yet are left out."""
        found = {}
        for uri, document in self.workspace.text_documents.items():
            path = to_fs_path(uri) if uri.startswith("file:") else None
            if path is not None and path.endswith((".py", ".pyw")):
                found[path] = document
        return found

    def _publish(self, document: TextDocument, checked: CheckedText) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=document.uri,
                version=document.version,
                diagnostics=[messages.diagnose(document, found) for found in checked.problems],
            )
        )

    def _tell_config_errors(self) -> None:
        """Show each configuration error once."""
        errors = set(self._documents.config_errors.values())
        for error in sorted(errors - self._told):
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"stoker: {error}"))
        self._told = errors

    def clear(self, uri: str) -> None:
        """Remove a closed document's findings from the screen."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    def find_checked(self, uri: str) -> tuple[TextDocument, CheckedText] | None:
        """Return a document and the result of its latest check, if it has not changed since."""
        document = self.workspace.get_text_document(uri)
        checked = self._documents.find(to_fs_path(uri) or "")
        if checked is None or checked.text != document.source:
            return None
        return document, checked


async def _check_opened(server: CheckServer, params: types.DidOpenTextDocumentParams) -> None:
    await server.check_after(0)


async def _check_changed(server: CheckServer, params: types.DidChangeTextDocumentParams) -> None:
    await server.check_after(_PAUSE_S)


async def _check_saved(server: CheckServer, params: types.DidSaveTextDocumentParams) -> None:
    await server.check_after(0)


async def _forget_closed(server: CheckServer, params: types.DidCloseTextDocumentParams) -> None:
    server.clear(params.text_document.uri)
    await server.check_after(_PAUSE_S)


def _act(server: CheckServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    found = server.find_checked(params.text_document.uri)
    if found is None:
        return []
    lines = range(params.range.start.line, params.range.end.line + 1)
    asked = None if params.context.only is None else [getattr(k, "value", k) for k in params.context.only]
    return messages.offer_actions(*found, lines, asked)


def _hover(server: CheckServer, params: types.HoverParams) -> types.Hover | None:
    found = server.find_checked(params.text_document.uri)
    if found is None:
        return None
    line = params.position.line + 1
    here = [one for one in found[1].problems if one.problem.line <= line <= one.problem.end_line]
    if not here:
        return None
    text = "\n\n---\n\n".join(map(messages.explain, here))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))


def make_server() -> CheckServer:
    """Make a server with all its features registered."""
    server = CheckServer()
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_check_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_check_changed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(_check_saved)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_forget_closed)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, _ACTIONS)(_act)
    server.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    return server
