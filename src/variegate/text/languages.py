"""What is known about each language: a few short word lists, nothing to download.

Everything that needs a list of words takes a language; ``None`` stands for a
language about which nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LANGUAGES", "Language", "as_language"]


@dataclass(frozen=True)
class Language:
    """A language, as far as splitting and describing sentences needs it.

    Attributes
    ----------
    name, code : str
        ``"english"`` and its ISO 639-1 code ``"en"``.
    pronouns : frozenset of str
        Forms of the personal pronouns, in lower case.  Forms that are more often
        another word (Czech *je*, Hebrew *את*) are left out.
    function_words : frozenset of str
        The most common articles, prepositions, conjunctions and auxiliaries.
    dates : frozenset of str
        Names of months and weekdays, in lower case, in the forms dates use.
    abbreviations : frozenset of str
        Without the last full stop, which does not end a sentence after them.
    right_to_left : bool
    """

    name: str
    code: str
    pronouns: frozenset[str]
    function_words: frozenset[str]
    dates: frozenset[str]
    abbreviations: frozenset[str]
    right_to_left: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = Language(
    "english",
    "en",
    pronouns=_words("i me you he him she her it we us they them"),
    function_words=_words(
        """a an the of to in on at by for from with about into over after before
        between through during under and or but nor so if because as than that which
        who when while not is are was were be been being has have had do does did will
        would can could may might should this these those there its their his"""
    ),
    dates=_words(
        """january february march april may june july august september october
        november december jan feb mar apr jun jul aug sep sept oct nov dec monday
        tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur
        thurs fri sat sun"""
    ),
    abbreviations=_words(
        """Mr Mrs Ms Dr Prof Gen Sen Rep Gov Lt Col Sgt Capt Cmdr Adm Maj Pres Rev
        Hon St Mt vs e.g i.e cf approx est dept Fig fig Eq Vol pp Messrs Ph.D Supt"""
    ),
)

_ARABIC = Language(
    "arabic",
    "ar",
    pronouns=_words(
        """أنا انا نحن أنت انت أنتم انتم أنتما أنتن هو هي هم هن هما إياه إياها إياهم
        وهو وهي وهم فهو فهي لهم لنا لكم عليه عليها عليهم إليه إليها إليهم"""
    ),
    function_words=_words(
        """في من إلى الى على عن مع بعد قبل بين خلال منذ حتى عند تحت فوق دون ضد و أو او
        ثم لكن ولكن بل أن ان إن أنه انه إذا اذا لأن كما مثل التي الذي الذين هذا هذه
        ذلك تلك هناك لا لم لن ما قد كان كانت يكون تكون كل بعض غير أي حول وقد وفي"""
    ),
    dates=_words(
        """يناير فبراير مارس أبريل ابريل إبريل مايو يونيو يونيه يوليو يوليه أغسطس اغسطس
        سبتمبر أكتوبر اكتوبر نوفمبر ديسمبر كانون شباط آذار اذار نيسان أيار ايار حزيران
        تموز آب أيلول ايلول تشرين الأول الاول الثاني السبت الأحد الاحد الاثنين الإثنين
        الأثنين الثلاثاء الأربعاء الاربعاء الخميس الجمعة الجمعه يوم"""
    ),
    abbreviations=_words("د أ م ت ص هـ ق.م دبليو"),
    right_to_left=True,
)

_CZECH = Language(
    "czech",
    "cs",
    pronouns=_words(
        """já ty on ona ono my vy oni ony mě mne mně mi mnou tě tebe tobě ti tebou ho
        jej jeho něho němu jemu mu jím ním jí ji ní nás nám námi vás vám vámi jim nim
        jich nich jimi nimi"""
    ),
    function_words=_words(
        """a i v ve na s se si z ze do k ke o od po pro při před přes za pod nad mezi
        podle kvůli bez u že aby ale nebo ani když protože jako než jak kde co který
        která které kteří to ten ta tento tato je jsou byl byla bylo byly být bude
        budou by ne není už také"""
    ),
    dates=_words(
        """leden ledna únor února březen března duben dubna květen května červen června
        červenec července srpen srpna září říjen října listopad listopadu prosinec
        prosince pondělí úterý středa středu čtvrtek pátek sobota sobotu neděle
        neděli"""
    ),
    abbreviations=_words(
        """např tzv tj tzn resp popř př č čís čl str s sv tř ul nám tel kpt gen plk
        por mjr dr Dr doc prof ing Ing Mgr mgr Bc JUDr MUDr PhDr RNDr pí zejm cca kap
        obr tab odst srov mld mil tis sl pozn"""
    ),
)

_FRENCH = Language(
    "french",
    "fr",
    pronouns=_words(
        "je j tu il elle on nous vous ils elles me te moi toi lui eux soi leur"
    ),
    function_words=_words(
        """le la les l un une des du de d à au aux en dans sur sous par pour avec sans
        entre vers chez depuis pendant après avant et ou mais donc car ni si que qu qui
        dont où comme quand ce cette ces son sa ses ne n pas plus est sont était a ont
        avait être été se s"""
    ),
    dates=_words(
        """janvier février mars avril mai juin juillet août aout septembre octobre
        novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche"""
    ),
    abbreviations=_words(
        """M MM Mme Mmes Mlle Mlles Dr Pr Me Mgr St Ste av bd boul env ex p pp chap
        éd fig cf c.-à-d p.ex apr n° tél ann"""
    ),
)

_GREEK = Language(
    "greek",
    "el",
    pronouns=_words(
        """εγώ εσύ εμείς εσείς αυτός αυτή αυτό αυτοί αυτές αυτά αυτόν αυτήν αυτούς αυτών
        εμένα εσένα εμάς εσάς μου σου μας σας μένα σένα"""
    ),
    function_words=_words(
        """ο η το οι τα του της των τον την τους τις ένας ένα μια μία σε στο στη στην
        στον στους στις στα από με για προς κατά μετά πριν χωρίς ως μέχρι και κι ή αλλά
        όμως ότι πως που να θα δεν δε μην μη όταν αν γιατί είναι ήταν έχει έχουν είχε
        όπως"""
    ),
    dates=_words(
        """ιανουάριος ιανουαρίου φεβρουάριος φεβρουαρίου μάρτιος μαρτίου απρίλιος
        απριλίου μάιος μαΐου μαίου μαϊου ιούνιος ιουνίου ιούλιος ιουλίου αύγουστος
        αυγούστου σεπτέμβριος σεπτεμβρίου οκτώβριος οκτωβρίου νοέμβριος νοεμβρίου
        δεκέμβριος δεκεμβρίου δευτέρα τρίτη τετάρτη πέμπτη παρασκευή σάββατο κυριακή"""
    ),
    abbreviations=_words(
        """κ κκ κα Κ π.χ δηλ δρ Δρ καθ αρ αριθ τηλ λ.χ σελ βλ πρβλ εκατ δισ χλμ χιλ μ.Χ
        π.Χ οδ στρ άρθ παρ τ.μ Αγ αγ Γεν"""
    ),
)

_HEBREW = Language(
    "hebrew",
    "he",
    pronouns=_words(
        """אני אנחנו אנו אתה אתם אתן הוא היא הם הן אותי אותך אותו אותה אותנו אתכם אותם
        אותן לי לך לו לנו לכם להם להן שלי שלך שלו שלה שלנו שלכם שלהם בו בהם ממנו ממנה"""
    ),
    function_words=_words(
        """של על את עם אל מן בין לפני אחרי תחת מעל ליד נגד בלי עד כדי כמו לפי גם או אבל
        אך אם כי אשר ש ה ו ב ל כ מ לא אין יש היה היתה הייתה היו יהיה להיות זה זו זאת
        אלה אלו כל רק עוד יותר כאשר מה מי איך ידי"""
    ),
    dates=_words(
        """ינואר פברואר מרץ מרס אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר
        בינואר בפברואר במרץ במרס באפריל במאי ביוני ביולי באוגוסט בספטמבר באוקטובר
        בנובמבר בדצמבר ראשון שני שלישי רביעי חמישי שישי שבת יום ביום"""
    ),
    abbreviations=_words("עמ ר גב פרופ"),
    right_to_left=True,
)

_HINDI = Language(
    "hindi",
    "hi",
    pronouns=_words(
        """मैं मैंने मुझे मुझको मुझसे हम हमने हमें हमको तू तुम तुमने तुम्हें आप आपने आपको यह वह वे
        ये इसने उसने उसे उसको उन्होंने उन्हें उनको इन्होंने इन्हें इसे"""
    ),
    function_words=_words(
        """का के की को ने से में पर तक के लिए लिये साथ बाद पहले द्वारा बीच तथा और या एवं
        लेकिन परन्तु किन्तु कि जो जिस जब तो भी ही नहीं न है हैं था थे थी हो होता होती होने
        गया गई गए रहा रही रहे कर करने किया इस उस इन उन एक यदि क्योंकि"""
    ),
    dates=_words(
        """जनवरी फरवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर सितम्बर अक्टूबर
        अक्तूबर नवंबर नवम्बर दिसंबर दिसम्बर सोमवार मंगलवार मगंलवार बुधवार गुरुवार गुरूवार
        बृहस्पतिवार वीरवार शुक्रवार शनिवार रविवार इतवार"""
    ),
    abbreviations=_words("डॉ डा श्री प्रो कि कि.मी मि मी सु पं सं रु ई.पू"),
)

#: The languages, by name.
LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (_ENGLISH, _ARABIC, _CZECH, _FRENCH, _GREEK, _HEBREW, _HINDI)
}


def as_language(name: str | Language | None) -> Language | None:
    """Return the language of that name or ISO 639-1 code; ``None`` stays ``None``."""
    if name is None or isinstance(name, Language):
        return name
    wanted = name.strip().lower()
    for language in LANGUAGES.values():
        if wanted in (language.name, language.code):
            return language
    known = ", ".join(f"{entry.name} ({entry.code})" for entry in LANGUAGES.values())
    raise ValueError(
        f"unknown language {name!r}: use one of {known}, or None for any other language"
    )
