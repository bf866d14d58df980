"""Own sessions: where the user is logged in, and the end of one or of all."""

from fastapi import Request, Response

from framedex.access import Action
from framedex.core.counts import counted
from framedex.records import OwnSession
from framedex.service.actions import needs, routes
from framedex.service.parameters import CurrentActor, Service
from framedex.service.routes.account import Message
from framedex.service.state import COOKIE

router = routes("account")


@router.get("/sessions")
@needs(Action.OWN_ACCOUNT)
def own_sessions(service: Service, actor: CurrentActor, request: Request) -> list[OwnSession]:
    """Return the own sessions that have not ended, the newest first; ``is_current`` is that of the request."""
    token = request.cookies.get(COOKIE)
    current = None if token is None else service.hub.sessions.id_of(token)
    found = service.hub.own_sessions.live(actor)
    return [each.model_copy(update={"is_current": each.id == current}) for each in found]


@router.delete("/sessions/{session_id}")
@needs(Action.OWN_ACCOUNT)
def end_own_session(service: Service, actor: CurrentActor, session_id: str) -> Message:
    """End one of the own sessions."""
    service.hub.own_sessions.end(actor, session_id.lower())
    return Message(message="The session has ended")


@router.delete("/sessions")
@needs(Action.OWN_ACCOUNT)
def end_own_sessions(service: Service, actor: CurrentActor, response: Response) -> Message:
    """End all own sessions, that of the request among them; API keys stay."""
    count = service.hub.own_sessions.end_all(actor)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    return Message(message=f"{counted(count, 'sessions')} ended")
