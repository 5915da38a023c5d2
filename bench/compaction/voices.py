"""What the user and the agent say, in several languages.

A narration says nothing that must be kept. A decision is a choice between two options, a finding reports values:
both are facts, word for word. Slots are filled by the session.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Voice(msgspec.Struct, frozen=True):
    """One language. A decision has `{a}` and `{b}`, a finding `{x}`, `{y}` and `{f}`, a rule `{p}`."""

    tasks: tuple[str, ...]
    rules: tuple[str, ...]
    narrations: tuple[str, ...]
    decisions: tuple[str, ...]
    findings: tuple[str, ...]
    echoes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]


ENGLISH = Voice(
    tasks=(
        "The nightly job drops records when the upstream is slow. Find out why and fix it.",
        "Please add rate limiting to the public endpoints and cover it with tests.",
        "Our startup time doubled last week. Bring it back without losing features.",
        "Go on.",
        "Good. Now look at the remaining warnings as well.",
    ),
    rules=(
        "Never edit anything below {p}/generated.",
        "Do not add new dependencies without asking me.",
        "Every public function in {p} keeps its signature.",
        "Commit messages must not mention ticket numbers.",
    ),
    narrations=(
        "I'll have a look at how this is wired up.",
        "Next I want to see the tests around it.",
        "That is the expected shape, so I continue with the caller.",
        "Running the suite again to see where we stand.",
        "The output is long; I only need the tail of it.",
        "Let me check the configuration before I touch the code.",
        "This file looks unrelated. Moving on.",
    ),
    decisions=(
        "We go with {a}; {b} would need a migration.",
        "After comparing both I settle on {a} rather than {b}.",
        "{a} it is. The alternative, {b}, broke ordering under load.",
        "For now {a} stays, and {b} is off the table.",
    ),
    findings=(
        "The profile shows {x} before and {y} after, all of it inside {f}.",
        "It comes from {f}: the limit there is {x}, while callers assume {y}.",
        "With {x} the queue in {f} never drains; {y} is the first value that works.",
    ),
    echoes=("So the value that counts is {v}.", "Noted: {v}.", "That matches what I suspected, {v}."),
    options=(
        ("an in-process cache with a two-level key", "a shared Redis instance"),
        ("one writer thread and a bounded channel", "a lock around each shard"),
        ("retrying only idempotent requests", "retrying everything with jitter"),
        ("keeping the v2 payload and a shim", "rewriting every consumer"),
        ("streaming rows straight into the archive", "buffering a day in memory"),
        ("a lazily built index per tenant", "one global index at boot"),
        ("validating at the gateway only", "validating in each service"),
        ("pinning the parser and vendoring it", "tracking its main branch"),
        ("soft deletes with a nightly sweep", "hard deletes in the request"),
        ("monotonic ids from the sequence", "random ids per process"),
    ),
    steps=(
        "Reproduce the failure",
        "Read the callers",
        "Write the fix",
        "Cover it with tests",
        "Update the docs",
        "Measure again",
    ),
)
GERMAN = Voice(
    tasks=(
        "Der Import bricht bei großen Dateien ab. Finde die Ursache und behebe sie.",
        "Bitte ergänze die Begrenzung der Anfragen und teste sie.",
        "Weiter.",
        "Gut, dann räume noch die Warnungen auf.",
    ),
    rules=(
        "Ändere nichts unter {p}/generated.",
        "Keine neuen Abhängigkeiten ohne Rückfrage.",
        "Die Schnittstelle in {p} bleibt, wie sie ist.",
    ),
    narrations=(
        "Ich sehe mir zuerst an, wie das zusammenhängt.",
        "Als Nächstes die Tests dazu.",
        "Das sieht aus wie erwartet, ich gehe zum Aufrufer weiter.",
        "Ich lasse alles noch einmal laufen.",
        "Diese Datei hat damit nichts zu tun.",
    ),
    decisions=(
        "Wir nehmen {a}; {b} hätte eine Migration gebraucht.",
        "Nach dem Vergleich bleibt es bei {a}, nicht bei {b}.",
        "{a} ist gesetzt, {b} scheidet wegen der Reihenfolge aus.",
    ),
    findings=(
        "Die Messung zeigt {x} vorher und {y} nachher, alles davon in {f}.",
        "Die Grenze in {f} liegt bei {x}, die Aufrufer rechnen mit {y}.",
    ),
    echoes=("Entscheidend ist also {v}.", "Notiert: {v}."),
    options=(
        ("ein Zwischenspeicher im Prozess", "eine gemeinsame Redis-Instanz"),
        ("ein einziger Schreiber mit begrenzter Warteschlange", "eine Sperre je Teilbereich"),
        ("nur wiederholbare Anfragen erneut zu senden", "alles mit Verzögerung zu wiederholen"),
        ("ein Index je Mandant bei Bedarf", "ein großer Index beim Start"),
        ("die Prüfung am Eingang", "eine Prüfung in jedem Dienst"),
        ("weiches Löschen mit nächtlichem Aufräumen", "sofortiges Löschen"),
    ),
    steps=("Fehler nachstellen", "Aufrufer lesen", "Korrektur schreiben", "Tests ergänzen", "Doku anpassen"),
)
CZECH = Voice(
    tasks=(
        "Noční úloha ztrácí záznamy, když je zdroj pomalý. Zjisti proč a oprav to.",
        "Přidej prosím omezení počtu požadavků a testy k němu.",
        "Pokračuj.",
    ),
    rules=(
        "Neměň nic pod {p}/generated.",
        "Žádné nové závislosti bez dotazu.",
        "Veřejné funkce v {p} zůstávají beze změny.",
    ),
    narrations=(
        "Nejdřív se podívám, jak je to zapojené.",
        "Teď testy, které se toho týkají.",
        "To odpovídá očekávání, jdu dál k volajícímu.",
        "Spustím celou sadu ještě jednou.",
    ),
    decisions=(
        "Bereme {a}; {b} by znamenalo migraci.",
        "Po srovnání zůstává {a}, nikoli {b}.",
        "Platí {a}, varianta {b} odpadá kvůli pořadí.",
    ),
    findings=("Měření ukazuje {x} předtím a {y} potom, vše v {f}.", "Mez v {f} je {x}, volající počítají s {y}."),
    echoes=("Rozhodující je tedy {v}.", "Poznamenáno: {v}."),
    options=(
        ("mezipaměť uvnitř procesu", "sdílená instance Redis"),
        ("jediný zapisovatel s omezenou frontou", "zámek pro každý díl"),
        ("opakování jen bezpečných požadavků", "opakování všeho se zpožděním"),
        ("index pro každého nájemce až podle potřeby", "jeden velký index při startu"),
        ("ověřování na vstupu", "ověřování v každé službě"),
    ),
    steps=("Zopakovat chybu", "Přečíst volající", "Napsat opravu", "Doplnit testy"),
)
JAPANESE = Voice(
    tasks=(
        "夜間ジョブが遅い上流でレコードを落とします。原因を調べて直してください。",
        "公開エンドポイントに流量制限を追加してください。",
        "続けてください。",
    ),
    rules=(
        "{p}/generated 以下は変更しないこと。",
        "確認なしに依存を追加しないこと。",
        "{p} の公開関数の署名は維持すること。",
    ),
    narrations=(
        "まず構成を確認します。",
        "次に関連するテストを見ます。",
        "想定どおりなので呼び出し側に進みます。",
        "もう一度全部実行します。",
    ),
    decisions=(
        "{a}を採用します。{b}は移行が必要です。",
        "比較の結果、{b}ではなく{a}にします。",
        "{a}で確定、{b}は順序が崩れるため見送り。",
    ),
    findings=(
        "計測では前が{x}、後が{y}で、すべて{f}の中です。",
        "{f}の上限は{x}ですが、呼び出し側は{y}を想定しています。",
    ),
    echoes=("つまり重要な値は{v}です。", "記録: {v}。"),
    options=(
        ("プロセス内キャッシュ", "共有のRedis"),
        ("単一の書き込みスレッドと有界キュー", "シャードごとのロック"),
        ("冪等な要求だけの再試行", "すべての再試行"),
        ("テナントごとの遅延索引", "起動時の全体索引"),
        ("入口での検証", "各サービスでの検証"),
    ),
    steps=("失敗を再現する", "呼び出し側を読む", "修正を書く", "テストを追加する"),
)
FRENCH = Voice(
    tasks=(
        "L'import s'arrête sur les gros fichiers. Trouve la cause et corrige-la.",
        "Ajoute une limite de débit avec ses tests.",
        "Continue.",
    ),
    rules=(
        "Ne touche à rien sous {p}/generated.",
        "Pas de nouvelle dépendance sans me demander.",
        "Les fonctions publiques de {p} gardent leur signature.",
    ),
    narrations=(
        "Je regarde d'abord comment tout est relié.",
        "Ensuite les tests voisins.",
        "Rien d'inattendu ici, je passe à l'appelant.",
        "Je relance la suite.",
    ),
    decisions=(
        "On prend {a} ; {b} imposerait une migration.",
        "Tout bien pesé, {a} et non {b}.",
        "C'est {a} qui reste, {b} cassait l'ordre.",
    ),
    findings=(
        "La mesure donne {x} avant et {y} après, le tout dans {f}.",
        "La borne de {f} vaut {x}, les appelants comptent sur {y}.",
    ),
    echoes=("La valeur à retenir est donc {v}.", "Je note {v}."),
    options=(
        ("un cache interne au processus", "une instance Redis partagée"),
        ("un seul écrivain et une file bornée", "un verrou par fragment"),
        ("la reprise des seules requêtes idempotentes", "la reprise de tout avec délai"),
        ("un index paresseux par client", "un index global au démarrage"),
        ("la suppression douce et un balayage nocturne", "la suppression immédiate"),
    ),
    steps=("Reproduire la panne", "Lire les appelants", "Écrire la correction", "Ajouter des tests"),
)
VOICES: Final = {"en": ENGLISH, "de": GERMAN, "cs": CZECH, "ja": JAPANESE, "fr": FRENCH}
