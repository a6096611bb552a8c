// SPDX-License-Identifier: BSD-3-Clause
// Brings the part of the page that changes anew, each second while somebody can see it. The server escapes all that is in it.
'use strict';
const EVERY = 1000, PATIENCE = 5000;
const part = document.getElementById('fabric'), state = document.getElementById('state');

function say(text, old) {
	state.textContent = text;
	document.body.classList.toggle('old', old);
}

async function look() {
	if (document.hidden)
		return;
	try {
		const answer = await fetch('/fabric' + location.search, {cache: 'no-store', signal: AbortSignal.timeout(PATIENCE)});
		if (!answer.ok)
			throw new Error('status ' + answer.status);
		const html = await answer.text();
		if (getSelection().isCollapsed) {  // somebody is about to copy something: it stays
			part.innerHTML = html;
			say('live', false);
		} else
			say('held while text is selected', false);
	} catch (e) {
		say('tools/lab web does not answer (' + e.message + '): this is old', true);
	}
}

async function forever() {
	await look();
	setTimeout(forever, EVERY);
}
forever();
