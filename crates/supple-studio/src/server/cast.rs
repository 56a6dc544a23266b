//! Characters that are sent to stand beside the present one.

use super::*;

/// A character of a file, beside the one that is there.
pub(super) async fn guest(State(desk): State<Arc<Desk>>, request: axum::extract::Request) -> Response {
    let Ok(_turn) = desk.turns.load.clone().try_acquire_owned() else {
        let text = "another file is being opened: try again when that is done";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "studio/busy", text);
    };
    let name = request.headers().get("x-file-name").and_then(|name| name.to_str().ok());
    let name = name.unwrap_or("character.glb").to_owned();
    let as_prop = request.headers().get("x-as").is_some_and(|kind| kind == "prop");
    let body = match read_body(request, desk.limits.upload, desk.limits).await {
        Ok(body) => body,
        Err(fault) => return not_read(fault, desk.limits.upload),
    };
    let folder = desk.folder.clone();
    let read = move || simulation::read_guest(&name, &body, folder.as_ref());
    let Ok(read) = tokio::task::spawn_blocking(read).await else { return stopped() };
    let (file, character) = match read {
        Ok((file, character)) => (file, Box::new(character)),
        Err((code, text)) => return refuse(StatusCode::BAD_REQUEST, &code, text),
    };
    let (reply, answer) = oneshot::channel();
    if desk.commands.send(Command::Guest { file, character, as_prop, reply }).await.is_err() {
        return stopped();
    }
    done(answer).await
}
