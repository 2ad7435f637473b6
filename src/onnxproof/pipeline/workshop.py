"""What the stages share that one process carries out: the subject is loaded once, its session and its float64 copy are made once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onnxproof.parity.ledger import Ledger
from onnxproof.parity.listener import Listener
from onnxproof.parity.memo import Memo
from onnxproof.parity.truth import PLANNED, Effort
from onnxproof.parity.verifier import Verifier
from onnxproof.pipeline.closer_look import CloserLook
from onnxproof.pipeline.loading import check_weights, load_anew
from onnxproof.pipeline.stages import LARGE
from onnxproof.proof.artifact import Artifact
from onnxproof.request.request import Request, VerifySettings
from onnxproof.subject.subject import Subject


@dataclass
class Workshop:
    """What is made already."""

    subject: Subject | None = None
    _verifier: Verifier | None = None
    _asked: tuple[Artifact, VerifySettings, bool] | None = None
    _memo: Memo | None = None

    def load(self, request: Request, weights: str | None = None) -> Subject:
        """The subject; loaded here, it must have the weights that another process exported."""
        if self.subject is None:
            self.subject = load_anew(request)
            check_weights(self.subject, request, weights)
        return self.subject

    def verifier(
        self,
        request: Request,
        artifact: Artifact,
        listener: Listener,
        effort: Effort = PLANNED,
        *,
        stateful: bool,
        ledger: Ledger | None = None,
    ) -> Verifier:
        """What runs cases of this artifact, and goes on with a ledger of earlier ones."""
        ledger = Ledger() if ledger is None else ledger.copy()
        asked = (artifact, request.verify, stateful)
        if self._verifier is not None and self._asked == asked:
            return self._verifier.again(listener, effort, ledger)
        known = self._verifier if self._verifier is not None and self._differs_in_session(asked) else None
        if known is not None and self._memo is not None and known.suits(request.verify):
            self._verifier = known.elsewhere(request.verify, listener, self._memo)
        else:
            self._memo = Memo() if request.sweep else None
            how: dict[str, Any] = {"stateful": stateful, "effort": effort, "memo": self._memo, "ledger": ledger}
            self._verifier = Verifier(self.load(request), artifact, request.verify, listener, **how)
        self._asked = asked
        return self._verifier

    def clear_away(self, artifact: Artifact) -> None:
        """Let go of a large file's session: what comes next needs room more than a session, and who asks for one gets another."""
        if self._verifier is not None and artifact.bytes > LARGE:
            self._verifier.session.close()
            self._verifier = self._asked = self._memo = None

    def look_closer(self, closer: CloserLook, listener: Listener, effort: Effort) -> Verifier:
        """What judges inputs that are not planned."""
        how: dict[str, Any] = {"stateful": closer.stateful, "ledger": closer.ledger}
        return self.verifier(closer.request, closer.artifact, listener, effort, **how)

    def _differs_in_session(self, asked: tuple[Artifact, VerifySettings, bool]) -> bool:
        """Whether only the session is another one than that of the verifier that is there."""
        assert self._asked is not None  # there is a verifier
        artifact, settings, stateful = self._asked
        return asked == (artifact, replace(settings, session=asked[1].session), stateful)
